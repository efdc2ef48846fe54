"""What people see of a cluster while it runs."""
