"""Training the detector: in graph mode, or by a coordinator."""
