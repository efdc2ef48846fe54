"""The container's network: sets its bandwidth, and drops privileges."""
