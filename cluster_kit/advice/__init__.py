"""What a user's program and manifest say before any container starts: warnings and refusals."""
