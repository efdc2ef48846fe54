"""What the built-in programs share: frame, results, snapshots, signals; and graph mode."""
