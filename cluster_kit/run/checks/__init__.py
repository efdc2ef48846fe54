"""Checks of a host and its engine before a run: the lines of `doctor`."""
