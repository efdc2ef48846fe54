"""Checkpoints of graph mode: how one is written and read, and when."""
