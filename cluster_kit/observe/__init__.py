"""What a running cluster shows: state, progress, logs, last words."""
