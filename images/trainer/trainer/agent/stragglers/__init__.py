"""Tasks that hold the others up: found by their steps, or by the limits that they have met."""
