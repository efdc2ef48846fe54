"""What somebody may have meant by a name that was not found. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, None where none is like it."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)


def hint(name: str, known: Iterable[str]) -> str:
    """``did you mean `worker`? ``, or "" where no name is near."""
    near = nearest(name, known)
    return f"did you mean `{near}`? " if near else ""


def hint_or(name: str, known: Iterable[str], otherwise: str) -> str:
    """``did you mean `digits`? Or mend the path``; without a near name only the latter."""
    near = hint(name, known)
    return f"{near}Or {otherwise}" if near else otherwise


def proposal(name: str, known: Iterable[str]) -> str:
    """The cure for a name that was not found: the nearest, and all."""
    names = list(known)
    return f"{hint(name, names)}there are: {', '.join(names) or 'none'}"
