"""The fallback: tf.distribute.Server, which also runs Python ops that a program sends here."""

from __future__ import annotations

import os

from trainer.agent.errors import ServerError

_running: list[object] = []
"""Keeps the server alive: TensorFlow stops one that is garbage-collected."""


def start(server_def: bytes) -> str:
    """Start the server in this process and return its target (`grpc://…`)."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    import tensorflow as tf
    from tensorflow.core.protobuf import tensorflow_server_pb2

    definition = tensorflow_server_pb2.ServerDef.FromString(server_def)
    try:
        server = tf.distribute.Server(definition, start=True)
    except tf.errors.OpError as problem:
        raise ServerError(f"TensorFlow's server: {problem.message}") from problem
    _running.append(server)
    return str(server.target)
