"""What a project of somebody's has beside its clusters: a part for its Makefile, files for CI."""
