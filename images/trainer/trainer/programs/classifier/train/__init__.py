"""The ways to train the classifier."""
