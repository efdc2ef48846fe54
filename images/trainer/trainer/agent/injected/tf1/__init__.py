"""For programs written for TensorFlow 1: its API, and a server for those that start none."""
