"""What runs in a pod beside the tasks: Python's standard library only."""
