"""Linear regression, y = w x + b with noise: the smallest program in graph mode.

Every replica runs the program. The package training/graph_mode starts and ends the replicas, and
saves and restores the variables.
"""
