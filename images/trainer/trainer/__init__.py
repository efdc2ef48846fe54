"""What runs inside each container of a cluster: `agent`, how a task lives; `programs`, what trains.

`python3 -m trainer serve` is a TensorFlow server, `python3 -m trainer run PROGRAM` a program under
a light supervisor. The contract with the host is the README beside this package.
"""
