"""`cluster-kit` and `python -m cluster_kit`: turns the kit's errors into exit codes."""

from __future__ import annotations

import sys

from cluster_kit.errors import Interrupted, KitError
from cluster_kit.util import signals


def main() -> None:
    """Run the command line; exits with the code of the error, if one was raised.

    Ctrl-C ends it without a traceback even while its libraries are being imported.
    """
    signals.interrupt_once()
    try:
        from cluster_kit.cli import app as application
        from cluster_kit.cli import (  # noqa: F401 - their verbs
            attach,
            compare,
            data,
            drill,
            gpus,
            look,
            make,
            matrix,
            new,
            render,
            run,
            stacks,
        )
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)
    try:
        application.app(prog_name="cluster-kit")
    except KitError as error:
        application.print_error(error, as_json="--json" in sys.argv)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
