"""Runs pods as containers of a Docker engine, as a node of Kubernetes would start them.

Kubernetes itself cannot be run here. Its documented rules for a Job are implemented here: which
pods there are, how variables are expanded, what is mounted, and which names resolve to which pod.
"""
