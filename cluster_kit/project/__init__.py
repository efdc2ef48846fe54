"""What `new` writes: a manifest with its program, a part for a Makefile, files for CI."""
