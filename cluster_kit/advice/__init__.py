"""Checks of a user's program and manifest before any container starts: warnings and errors."""
