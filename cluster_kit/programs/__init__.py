"""The programs and data sets that a manifest names."""
