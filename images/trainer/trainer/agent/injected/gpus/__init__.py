"""What a program does about its GPUs: sees which they are, compares, limits, simulates."""
