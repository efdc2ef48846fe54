"""The Docker engine, by its SDK: what Compose and a swarm share."""
