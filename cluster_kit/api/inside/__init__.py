"""The program that the chief's container runs while the coordinator is on the host."""
