"""Training in graph mode with between-graph replication: chief, workers, parameter servers.

A program describes a model in a GraphJob and calls run.run(). This package distributes the
training, restarts it, and reports it. `deploy` creates the clones inside a task.
"""
