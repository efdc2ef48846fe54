"""Runs the steps of workflows without GitHub, and checks the files for CI."""
