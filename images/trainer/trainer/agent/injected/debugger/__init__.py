"""A program that waits for a debugger before it begins."""
