"""Starts tasks in a user's image: checks of the image before a start, and the start of a task.

Both are files that the host has started by their path, with the image's Python.
"""
