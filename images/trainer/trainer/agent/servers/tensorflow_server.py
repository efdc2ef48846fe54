"""Starts a TensorFlow server in this process.

It uses the C API: the shared libraries, without `import tensorflow`. That needs a fifth of the
start-up time of tf.distribute.Server and less than half of its private memory. tf.distribute.Server
is the fallback.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from pathlib import Path

from trainer.agent.errors import ServerError


class NativeUnavailable(Exception):
    """This TensorFlow lacks the libraries or symbols; use the Python server."""


def start_native(server_def: bytes) -> str:
    """Start the server in this process and return its target (`grpc://…`). It never stops."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    framework, library = load_libraries()
    status = ctypes.c_void_p(framework.TF_NewStatus())
    server = ctypes.c_void_p(library.TF_NewServer(server_def, len(server_def), status))
    check_status(framework, status)
    library.TF_ServerStart(server, status)
    check_status(framework, status)
    return str(library.TF_ServerTarget(server).decode())


def load_libraries() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    """TensorFlow's two shared libraries, with the types of the functions used here."""
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        raise NativeUnavailable("tensorflow is not installed")
    directory = Path(spec.origin).parent
    try:
        framework = open_library(directory / "libtensorflow_framework.so.2", os.RTLD_GLOBAL)
        library = open_library(directory / "libtensorflow_cc.so.2")
        framework.TF_NewStatus.restype = ctypes.c_void_p
        framework.TF_GetCode.argtypes = [ctypes.c_void_p]
        framework.TF_Message.argtypes = [ctypes.c_void_p]
        framework.TF_Message.restype = ctypes.c_char_p
        library.TF_NewServer.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]
        library.TF_NewServer.restype = ctypes.c_void_p
        library.TF_ServerStart.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        library.TF_ServerTarget.argtypes = [ctypes.c_void_p]
        library.TF_ServerTarget.restype = ctypes.c_char_p
    except (OSError, AttributeError) as problem:
        raise NativeUnavailable(str(problem)) from problem
    return framework, library


def open_library(path: Path, scope: int = os.RTLD_LOCAL) -> ctypes.CDLL:
    """Open a library with lazy binding, which ctypes itself never uses: this saves a third of the
    time."""
    c = ctypes.CDLL(None)
    c.dlopen.restype = ctypes.c_void_p
    handle = c.dlopen(os.fsencode(path), scope | os.RTLD_LAZY)
    if not handle:
        c.dlerror.restype = ctypes.c_char_p
        raise OSError((c.dlerror() or b"").decode(errors="replace") or f"cannot open {path}")
    return ctypes.CDLL(str(path), handle=handle)


def check_status(framework: ctypes.CDLL, status: ctypes.c_void_p) -> None:
    """Raise ServerError if TensorFlow's status is not OK."""
    if framework.TF_GetCode(status) != 0:
        raise ServerError(f"TensorFlow's server: {framework.TF_Message(status).decode()}")


_python_servers: list[object] = []
"""Keeps the server alive: TensorFlow stops one that is garbage-collected."""


def start_python(server_def: bytes) -> str:
    """Start the server in this process and return its target (`grpc://…`)."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    import tensorflow as tf
    from tensorflow.core.protobuf import tensorflow_server_pb2

    definition = tensorflow_server_pb2.ServerDef.FromString(server_def)
    try:
        server = tf.distribute.Server(definition, start=True)
    except tf.errors.OpError as problem:
        raise ServerError(f"TensorFlow's server: {problem.message}") from problem
    _python_servers.append(server)
    return str(server.target)
