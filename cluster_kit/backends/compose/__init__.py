"""Docker Compose: the file, and the command line."""
