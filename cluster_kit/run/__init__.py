"""One run of a cluster: prepare, launch, watch, judge, save."""
