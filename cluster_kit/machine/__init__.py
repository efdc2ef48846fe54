"""This machine: reads its CPUs, memory, networks and GPUs, and installs a Docker engine."""
