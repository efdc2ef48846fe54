"""What a task uses, sampled once a second and written down for the host."""
