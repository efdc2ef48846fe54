"""Linear regression, y = w x + b with noise: the smallest program in graph mode.

Every replica runs it. training/graph_mode restores, saves, waits for and ends replicas.
"""
