"""A simulated engine, Compose and tasks: whole runs in milliseconds, without Docker."""
