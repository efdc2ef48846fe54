"""Run a program when a debugger is attached: debugged.py (-m MODULE | FILE) [ARG…]

It listens, waits until a debugger is attached, and then runs the program as Python does: FILE as
the main module, MODULE as with `-m`. Run as a file, like runner.py: nothing of this package is
imported.
"""

import os
import runpy
import sys
import time

WHERE = "/debugger"
"""The host mounts debugpy there, so images do not need it."""
PORT = 5678
"""The port in the container; the host publishes it only on its loopback address."""
PATIENCE_S = 10.0
"""Seconds to wait for the port, which the adapter of an earlier attempt may still hold."""


def wait_for_debugger(task: str, hosts_port: str) -> None:
    """Listen, print that, and return when a debugger is attached; raises ImportError without
    debugpy."""
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    sys.path.insert(0, WHERE)
    import debugpy

    sys.path.remove(WHERE)
    debugpy.configure(subProcess=False)
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            # The container's own address: connections to a published port do not arrive at its
            # loopback.
            debugpy.listen(("0.0.0.0", PORT))
            break
        except RuntimeError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
    print(f"{task}: waits for a debugger on 127.0.0.1:{hosts_port} of the host", flush=True)
    debugpy.wait_for_client()
    print(f"{task}: a debugger is attached; the program begins", flush=True)


def main(arguments: list[str]) -> None:
    """Wait for a debugger, then run the program that the arguments name."""
    wait_for_debugger(
        os.environ.get("CLUSTER_KIT_TASK", ""), os.environ.get("CLUSTER_KIT_DEBUG", "")
    )
    if arguments[0] == "-m":
        del sys.path[0]  # this file's directory; runner.py does so itself
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
