"""TensorFlow servers: starts one in this process, and queries others."""
