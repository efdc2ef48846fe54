"""An image that is not the kit's own: what is looked at before a start, and how a task starts.

Both are files that the host has started by their path, with the image's Python.
"""
