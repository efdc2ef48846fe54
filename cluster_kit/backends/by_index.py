"""What texts of the tasks of a role have in common, if they differ by the task's index. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def parts_of(texts: Sequence[str]) -> list[str] | None:
    """Returns the parts between which the index stands in the texts of indexes 0, 1, …; None if
    they differ otherwise."""
    first = texts[0]
    if all(text == first for text in texts):
        return [first]
    second = texts[1]  # an index has one digit in both, so that only digits differ
    if len(first) != len(second):
        return None
    parts = [""]
    for one, other in zip(first, second, strict=True):
        if one == other:
            parts[-1] += one
        elif (one, other) == ("0", "1"):
            parts.append("")
        else:
            return None
    if any(str(index).join(parts) != text for index, text in enumerate(texts)):
        return None
    return parts
