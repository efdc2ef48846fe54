"""Backends, which start a cluster's containers: one package each."""
