"""How a task lives: its supervisor, the beacon between tasks, servers, and what is injected."""
