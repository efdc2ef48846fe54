"""Docker Compose: renders its file, and calls its command line."""
