"""Assigns GPUs to tasks. Pure."""
