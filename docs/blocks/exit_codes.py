"""The table of exit codes, from the errors that end the command with them."""

from __future__ import annotations

import inspect

from cluster_kit.errors import KitError
from docs.blocks.table import table

WELL = (
    "The training succeeded, and the evaluator, if there is one, scored the last checkpoint, or "
    "was stopped by a user."
)
BUG = (
    "A bug in the kit, with its traceback. Without one: nothing reads its output any more "
    "(`… | head`), or you answered no."
)


def codes() -> str:
    meanings: dict[int, list[str]] = {0: [WELL], KitError.exit_code: [BUG]}
    for error in KitError.__subclasses__():
        first = (inspect.getdoc(error) or "").partition("\n")[0]
        meanings.setdefault(error.exit_code, []).append(first)
    rows = [(str(code), " ".join(texts)) for code, texts in sorted(meanings.items())]
    return table(("code", "meaning"), rows)
