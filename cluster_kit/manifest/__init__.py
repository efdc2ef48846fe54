"""The manifest as the user wrote it: its schema, and reading and validating a file."""
