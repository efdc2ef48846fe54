"""The TensorFlow graph of one replica, built before any session exists."""
