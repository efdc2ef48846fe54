"""TensorFlow 1's API for programs, and a server for programs that start none."""
