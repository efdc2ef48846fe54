"""Whether a job gets on, and what it waits for."""
