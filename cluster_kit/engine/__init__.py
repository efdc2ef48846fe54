"""Talks to the Docker engine through its SDK."""
