"""Makes an import of TensorFlow take a fifth less time.

The import creates a million lasting objects. Python's collections of garbage during it take 15 % of
its time, and every later full collection would visit all of these objects again. Another 8 % goes
into TensorFlow's type variables: `typing` compiles each of their 18,000 forward references, of
which 95 differ. This module is also loaded by its path (on_path/), so it imports nothing of this
package.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import typing
from collections.abc import Iterator


@contextlib.contextmanager
def made_faster() -> Iterator[None]:
    """In the block, pause collections, and let `typing` compile equal forward references once.

    Later collections skip the objects that exist at its end.
    """
    enabled, names = gc.isenabled(), vars(typing)
    before = names.get("compile")
    gc.disable()
    # A global variable of the module hides the built-in function of the same name from it. Where a
    # later Python compiles forward references in another module, this changes nothing.
    names["compile"] = before or functools.cache(compile)
    try:
        yield
    finally:
        if before is None:
            names.pop("compile", None)
        gc.freeze()
        if enabled:
            gc.enable()
