"""A run as a page to look at, and as JSON: lanes, curves, traffic, verdict."""
