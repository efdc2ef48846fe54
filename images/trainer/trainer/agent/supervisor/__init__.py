"""Supervises a program in its container: starts, ends and retries it, and reports how it ended."""
