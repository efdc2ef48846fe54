"""Docker Swarm as a backend."""
