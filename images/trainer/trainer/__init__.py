"""The code in each container of a cluster: `agent` runs a task, `programs` are the built-in
programs.

`python3 -m trainer serve` is a TensorFlow server, `python3 -m trainer run PROGRAM` a program under
a light supervisor. The README next to this package is the contract with the host.
"""
