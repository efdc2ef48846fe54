"""Ends a run: judges, stops, saves and removes."""
