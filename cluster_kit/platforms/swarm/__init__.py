"""Docker Swarm: a stack file, its start, its tasks, and checks of its nodes."""
