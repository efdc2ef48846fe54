"""Imports TensorFlow once, and forks a Python for each request of COMMAND: server.py COMMAND…

The import takes 2.5 s of CPU time, most of the time of a small program. Forking is safe as long as
this process has one thread, which is checked each time: TensorFlow starts its threads with the
first operation, which never runs here.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # otherwise numpy starts threads when it is imported
HERE = Path(__file__).parent


def main(command: list[str]) -> int:
    """Serve until `command` has ended; returns its exit code."""
    path = str(Path(tempfile.mkdtemp()) / "socket")
    given = dict(os.environ, WARM_PYTHON=str(HERE / "python"), WARM_PYTHON_SOCKET=path)
    import fork

    fork.warm_up()
    gc.collect()
    gc.freeze()
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    watched = selectors.DefaultSelector()
    main_process = subprocess.Popen(command, env=given)
    ended = os.pidfd_open(main_process.pid)
    watched.register(ended, selectors.EVENT_READ)
    watched.register(server, selectors.EVENT_READ, functools.partial(accept, server, watched))
    while True:
        for key, _ in watched.select():
            if key.fileobj is ended:
                return main_process.wait()
            if key.fd in watched.get_map():  # keeps a reference meanwhile
                key.data()


def accept(server: socket.socket, watched: selectors.BaseSelector) -> None:
    """Fork for one client, and watch both."""
    import fork

    client, _ = server.accept()
    head, files, _, _ = socket.recv_fds(client, 8, 3)
    text = client.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL) if head else b""
    if not text:  # It was killed before it had sent its request.
        client.close()
        return
    threads = list(Path("/proc/self/task").iterdir())
    assert len(threads) == 1, f"forking is not safe: {len(threads)} threads"
    process = os.fork()
    if not process:
        for inherited in (*watched.get_map(), client.detach()):
            os.close(inherited)
        watched.close()
        fork.become(json.loads(text), files)
    for file in files:
        os.close(file)
    with contextlib.suppress(BrokenPipeError):
        client.sendall(f"{process}\n".encode())
    ended = os.pidfd_open(process)

    def let_go() -> None:
        watched.unregister(client)
        watched.unregister(ended)
        client.close()
        os.close(ended)

    def gone() -> None:  # the client was killed
        signal.pidfd_send_signal(ended, signal.SIGKILL)
        os.waitpid(process, 0)
        let_go()

    def done() -> None:
        _, status = os.waitpid(process, 0)
        with contextlib.suppress(BrokenPipeError):
            client.sendall(f"{status}\n".encode())
        let_go()

    watched.register(client, selectors.EVENT_READ, gone)
    watched.register(ended, selectors.EVENT_READ, done)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
