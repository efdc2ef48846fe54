"""TensorFlow servers: start one in this process, ask others who they are."""
