"""An engine, Compose and tasks that are made up: whole runs in milliseconds, without Docker."""
