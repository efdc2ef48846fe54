"""The container's network: bandwidth, and giving up privileges."""
