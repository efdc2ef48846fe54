"""The story of one run: prepare, launch, watch, judge, save."""
