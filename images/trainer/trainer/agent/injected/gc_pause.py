"""Python's garbage collector around an import that makes a million objects which all stay.

Collecting while they are made costs 15 % of the import, and every later full collection would walk
them all again. Also loaded by its path (on_path/): imports nothing of this package.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def left_alone() -> Iterator[None]:
    """No collection meanwhile, and none ever looks at what exists at the end."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
