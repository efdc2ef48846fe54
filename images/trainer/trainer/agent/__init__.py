"""Runs one task: its supervisor, the beacon between tasks, servers, and code in programs."""
