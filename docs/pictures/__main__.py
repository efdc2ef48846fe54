"""`python -m docs.pictures [PICTURE…]`: makes these pictures, all of them without one."""

from __future__ import annotations

import sys
from pathlib import Path

from cluster_kit.errors import KitError
from docs.pictures.listed import DOCS, PICTURES


def main(arguments: list[str]) -> int:
    """Write what can be made, and say what cannot and why; the exit code."""
    if unknown := [name for name in arguments if name not in PICTURES]:
        print(f"no such picture: {', '.join(unknown)}; there are: {', '.join(PICTURES)}",
              file=sys.stderr)  # fmt: skip
        return 2
    failed = [name for name in arguments or PICTURES if not made(DOCS / name)]
    return 3 if failed else 0


def made(file: Path) -> bool:
    """Whether it could be written."""
    try:
        PICTURES[file.name].draw(file)
    except KitError as error:
        print(f"not made: {file.name}: {error.message}; {error.hint}", file=sys.stderr)
        return False
    print(f"written: {file}, {file.stat().st_size // 1000} kB")
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
