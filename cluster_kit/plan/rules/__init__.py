"""The rules a manifest must keep, by what they are about; each problem with its cure. Pure."""
