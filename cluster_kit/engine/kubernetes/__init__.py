"""A Kubernetes cluster as an engine: Jobs and their pods in place of containers."""
