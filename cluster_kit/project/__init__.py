"""Writes the files of the verb `new`: a manifest with its program, an include for a Makefile, files
for CI."""
