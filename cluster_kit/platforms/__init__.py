"""Platforms, on which a cluster runs: one package for each, and the code that they share."""
