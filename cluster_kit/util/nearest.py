"""What somebody may have meant by a name that there is not. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def hint(name: str, known: Iterable[str]) -> str:
    """``did you mean `worker`? ``, or nothing where no name is near."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean `{near[0]}`? " if near else ""


def proposal(name: str, known: Iterable[str]) -> str:
    """The cure for a name that there is not: the nearest, and all."""
    names = list(known)
    return f"{hint(name, names)}there are: {', '.join(names) or 'none'}"
