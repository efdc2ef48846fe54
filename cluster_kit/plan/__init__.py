"""From a manifest and the host's facts to a cluster. Pure."""
