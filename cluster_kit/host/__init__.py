"""This machine: CPUs, memory, networks, GPUs, and the engine's installation."""
