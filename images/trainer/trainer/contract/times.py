"""Seconds, factors and ports that host and image share."""

from __future__ import annotations

STOP_GRACE_S = 10
"""Docker kills a container this long after SIGTERM"""
PROGRAM_STOP_S = 0.6
"""a program gets this long after SIGTERM"""
PROGRAM_SAVE_S = 8.0
"""a program gets this long after SIGTERM if it handles the signal, or has put the file `saving` into its mailbox"""  # noqa: E501
SERVER_STOP_S = 0.7
"""a server stays this long after SIGTERM"""
SERVER_SAVE_S = 8.2
"""a server stays this long after SIGTERM if the leader is saving"""
WORKER_GRACE_S = 10.0
"""a worker's program gets this long after the leader finished"""
FAILED_JOB_GRACE_S = 2.0
"""a worker's program gets this long after the leader failed"""
HELP_S = 10.0
"""a silent task ends the job this long after it was reported, if it was not restarted"""
BEAT_S = 1.0
"""tasks send heartbeats to each other this often; a leader and an evaluator also to the host, by touching `/output/progress/<task>.beat`"""  # noqa: E501
LATECOMER_S = 15.0
"""a restarted evaluator waits this long for a leader whose progress file says that it has ended"""
LEADER_LOST_S = 30.0
"""a follower waits this long for a leader that does not answer, then ends"""
STRAGGLER_S = 20.0
"""a task is a straggler if it is twice as slow as the median of the others for this long"""

# Defaults, and numbers that are not times.
SILENT_S_BY_DEFAULT = 10.0
"""The default of `deadline.silent`."""
STRAGGLER_FACTOR = 2.0
"""A straggler is slower than the median of the others by at least this factor."""
BEACON_PORT_OFFSET = 1
"""The beacon listens on the port after TensorFlow's."""
DEBUGGER_PORT = 5678
"""The port in the container on which a program waits for a debugger."""
