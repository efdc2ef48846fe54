"""The classifier's network, and its weights in checkpoints."""
