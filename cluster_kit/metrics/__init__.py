"""A run as Prometheus metrics, from the events of tasks and engine. Pure."""
