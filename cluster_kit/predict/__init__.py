"""Predicts the speed of a training on more machines from a profile of it on few."""
