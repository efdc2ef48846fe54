"""Clusters in other people's tests: the pytest plugin with the fixture `cluster`."""
