"""Observes a running cluster: its state, progress, logs and errors."""
