"""Shows a cluster on the terminal while it runs."""
