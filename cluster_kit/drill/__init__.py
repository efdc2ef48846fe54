"""Drills: a cluster is run, broken on purpose as a scenario says, and judged."""
