"""What `new` writes: a manifest with its program, an include for a Makefile, files for CI."""
