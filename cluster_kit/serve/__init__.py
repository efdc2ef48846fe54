"""The live page: a small web server of this machine, and what it reads of clusters and runs."""
