"""The container's network: bandwidth, and giving up the privileges that shaping takes."""
