"""Asks TensorFlow's profiler in each task's server, all at once; no `import tensorflow`.

Every gRPC server of TensorFlow answers `tensorflow.ProfilerService`: those of the C API,
`tf.distribute.Server`, and the one that a coordinator or an all-reduce worker starts for itself.
The one who asks needs 36 MB and a third of a second this way. Field numbers are those of
profiler_service.proto and profiler_options.proto.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path

from trainer.agent.servers.wire import block, number

METHOD = "/tensorflow.ProfilerService/Profile"
SAVES_S = 15.0
"""A task gets this long, after the time that is traced, to save what it has seen."""
MOST_EVENTS = 1_000_000
HOST_EVENTS = 2
"""TensorFlow's level: ops and what calls them, but not every line of TensorFlow."""


def profile_request(task: str, root: Path, session: str, seconds: float) -> bytes:
    """A serialized ProfileRequest: the task saves `root/session/TASK.xplane.pb`."""
    milliseconds = max(1, round(seconds * 1000))
    options = (
        number(2, HOST_EVENTS)
        + number(3, 1)  # GPUs
        + number(5, 1)  # of the version of these options
        + number(9, milliseconds)
        + block(10, str(root))
    )
    return (
        number(1, milliseconds)
        + number(2, MOST_EVENTS)
        + block(4, options)
        + block(5, str(root))
        + block(6, session)
        + block(7, task)
    )


def ask_all(
    addresses: Mapping[str, str], root: Path, session: str, seconds: float
) -> dict[str, str]:
    """Let all tasks trace themselves for so long; why each one failed, "" for those that did not.

    Args:
        addresses: `host:port` of each task's TensorFlow server.
    """
    answers = dict.fromkeys(addresses, "no answer")
    until = time.monotonic() + seconds + SAVES_S

    def ask(task: str, address: str) -> None:
        answers[task] = _asked(address, profile_request(task, root, session, seconds), until)

    threads = [threading.Thread(target=ask, args=pair, daemon=True) for pair in addresses.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until + 1 - time.monotonic()))
    for task, answer in list(answers.items()):
        if not answer and not (root / session / f"{task}.xplane.pb").is_file():
            answers[task] = "it answered, but has written no trace"
    return answers


def _asked(address: str, request: bytes, until: float) -> str:
    import grpc

    options = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1)]
    try:
        with grpc.insecure_channel(address, options=options) as channel:
            call = channel.unary_unary(METHOD)
            call(request, timeout=max(0.1, until - time.monotonic()))
    except grpc.RpcError as problem:
        return why(problem.code().name, problem.details() or "")
    return ""


def why(code: str, details: str) -> str:
    """A gRPC error in words."""
    if code == "DEADLINE_EXCEEDED":
        return "it did not answer in time"
    if code == "UNAVAILABLE":
        return "no TensorFlow server answers there"
    if "nother profil" in details:
        return "somebody else profiles it now"
    return f"{code}: {details[:200]}"
