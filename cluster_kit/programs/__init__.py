"""Programs, data sets and requirements that a manifest names."""
