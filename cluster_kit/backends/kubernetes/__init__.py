"""Kubernetes as a backend: Indexed Jobs, and what they need."""
