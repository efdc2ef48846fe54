"""Proposals for a name that was not found. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar to `name`; None if no name is similar.

    Swapped letters count as a typing error: `pu` means up, not gpus.
    """
    names = list(known)
    swapped = [one for one in names if sorted(one) == sorted(name) and one != name]
    return next(iter([*swapped, *difflib.get_close_matches(name, names, n=1)]), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean `worker`? ``, or "" if no known name is similar."""
    near = nearest(name, known)
    return f"did you mean `{near}`? " if near else ""


def did_you_mean_or(name: str, known: Iterable[str], otherwise: str) -> str:
    """``did you mean `digits`? Or fix the path``; `otherwise` alone if no name is similar."""
    near = did_you_mean(name, known)
    return f"{near}Or {otherwise}" if near else otherwise


def proposal(name: str, known: Iterable[str]) -> str:
    """The hint for a name that was not found: the most similar one, and a list of all."""
    names = list(known)
    return f"{did_you_mean(name, names)}there are: {', '.join(names) or 'none'}"
