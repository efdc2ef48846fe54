"""The manifest as the user wrote it: its schema, how it is read, the problems of its shape."""
