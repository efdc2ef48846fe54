"""Plans a cluster from a manifest and the host's facts. Pure."""
