"""A run as Prometheus metrics: pure, from what tasks and the engine told."""
