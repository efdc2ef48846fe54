"""Platforms: where a cluster runs. One package each, and what they share."""
