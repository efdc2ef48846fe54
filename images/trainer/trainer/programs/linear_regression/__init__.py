"""Linear regression, y = w x + b with noise: the smallest program in graph mode.

Every replica runs it. Nothing here restores, saves, waits or ends anybody: graph/ does.
"""
