"""Acts as `python ARGUMENTS…`, which runs in a fork of server.py's process.

The fork gets this process's files, environment, directory and signals; this process ends as the
fork ends. If this process is killed, the fork is killed, too.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
             signal.SIGUSR2)  # fmt: skip


def main(arguments: list[str]) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    server = socket.socket(socket.AF_UNIX)
    server.connect(os.environ["WARM_PYTHON_SOCKET"])
    asked = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109 - pathlib takes 10 ms
    encoded = json.dumps(asked).encode()
    socket.send_fds(server, [len(encoded).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(encoded)
    answers = server.makefile()
    process = int(answers.readline())
    for number in FORWARDED:
        signal.signal(number, lambda number, _frame: os.kill(process, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    code = os.waitstatus_to_exitcode(int(answers.readline()))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
