"""Code that the built-in programs share: frame, results, snapshots, signals, graph mode."""
