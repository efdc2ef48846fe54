"""The shared training image: its name, its base image, and its build."""
