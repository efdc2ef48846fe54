"""A Docker Swarm as an engine: services and their tasks instead of containers."""
