"""Kubernetes: Indexed Jobs and what they need, pods as containers, and checks."""
