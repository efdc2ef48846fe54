"""From a manifest to containers that run."""
