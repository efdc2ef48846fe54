"""A run from the start of its containers to the end of its tasks."""
