"""The Docker engine, by its SDK."""
