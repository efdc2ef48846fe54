"""The live page: a small web server on this machine, and the reading of clusters and runs."""
