"""The list of the trainer's packages, from the first lines of their docstrings."""

from __future__ import annotations

import ast
from pathlib import Path

from docs.blocks.table import table

PACKAGE = Path(__file__).parents[2] / "images" / "trainer" / "trainer"


def trainer() -> str:
    """One line for each package of the trainer, and for each in it."""
    files = sorted((*PACKAGE.glob("*/__init__.py"), *PACKAGE.glob("*/*/__init__.py")))
    rows = [(f"`{file.parent.relative_to(PACKAGE)}/`", first_line(file)) for file in files]
    return table(("package", "what is in it"), rows)


def first_line(file: Path) -> str:
    """The first line of a module's docstring; '' without one."""
    doc = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return doc.partition("\n")[0]
