"""Pods as a node of Kubernetes would start them, run as containers of a Docker engine.

Kubernetes itself cannot be run here. What it does with a Job is documented, and done here by the
same rules: which pods there are, how variables are expanded, what is mounted, who is found by
which name.
"""
