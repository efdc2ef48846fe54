"""The terminal's view of a running cluster: live table, progress line, messages."""
