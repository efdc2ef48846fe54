"""The command line: short verbs that call the modules which do the work."""
