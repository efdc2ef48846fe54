"""`cluster-kit` and `python -m cluster_kit`: turns the kit's errors into exit codes."""

from __future__ import annotations

import gc
import os
import stat
import sys
from collections.abc import Callable
from typing import NoReturn

from cluster_kit.errors import HostError, Interrupted, KitError
from cluster_kit.util import process, stdio


def main() -> NoReturn:
    """Run the command line, and end the process with its exit code, even if threads still run."""
    stdio.open_closed()
    stdio.name_full_disk()
    stdio.guard_against_commands()
    os.umask(os.umask(stat.S_IRWXO) | stat.S_IWOTH)  # changes nothing for others
    stdio.leave(_exit_code(_run))


def _exit_code(run: Callable[[], None]) -> int:
    """The exit code with which Python would end after this call; prints what Python would print."""
    try:
        run()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - a bug keeps its traceback, as Python shows it
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _run() -> None:
    """Run the command line; raises SystemExit with the error's code if a KitError is raised.

    Ctrl-C ends it without a traceback even while its libraries are being imported.
    """
    process.interrupt_once()
    # Pydantic would search all installed packages for plugins, which would see every value.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    gc.disable()  # skip garbage collection during imports: saves about 10 %
    try:
        if "_CLUSTER_KIT_COMPLETE" in os.environ:
            from cluster_kit.cli import completion

            if shell := completion.asked():
                sys.exit(completion.answer(shell))
        from cluster_kit.cli import app

        app.load(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)
    gc.freeze()
    gc.enable()
    try:
        app.app(prog_name="cluster-kit")
    except KitError as error:
        app.print_error(error, as_json="--json" in sys.argv)
        sys.exit(error.exit_code)
    except stdio.DiskFull as error:
        full = HostError(
            f"stdout cannot be written: {error.strerror}", "free space, or print elsewhere"
        )
        app.print_error(full)
        sys.exit(full.exit_code)


if __name__ == "__main__":
    main()
