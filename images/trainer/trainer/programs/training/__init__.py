"""Code that the built-in programs share: start and end, signals, results, snapshots, graph mode."""
