"""Training in graph mode with between-graph replication: chief, workers, parameter servers.

A program describes one model in a GraphJob and calls run.run(); what makes it distributed,
restartable and visible is here. `deploy` makes the clones inside one task.
"""
