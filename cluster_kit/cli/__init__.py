"""The command line: thin verbs over the modules that do the work."""
