"""Checkpoints of any program: where they are, their files, and snapshots of variables by name."""
