"""Supervision of a program in its container: start it, end it, try again, say how it ended."""
