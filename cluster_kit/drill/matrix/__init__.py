"""Every role of every system, broken in every way, and what became of it: `cluster-kit matrix`."""
