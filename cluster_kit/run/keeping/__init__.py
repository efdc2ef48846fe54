"""What is kept of a run in its directory, and read there again."""
