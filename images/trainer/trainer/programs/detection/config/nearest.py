"""The cure for a name that is not known: the one that is spelt like it, or all of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], among: str = "known keys") -> str:
    """``did you mean `batch_size`?``, or what is known, after the words `among`."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean `{near[0]}`?" if near else f"{among}: {', '.join(names) or 'nothing'}"
