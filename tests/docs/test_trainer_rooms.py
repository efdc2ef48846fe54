"""images/trainer/README.md lists every room of the trainer, and what each is for."""

from __future__ import annotations

import re

from docs.blocks import rooms
from tests.make import ROOT

README = (ROOT / "images" / "trainer" / "README.md").read_text(encoding="utf-8")
ON_PATH = {"injected/on_path", "injected/for_programs"}
"""Directories that go on a program's PYTHONPATH are not packages: their parent describes them."""


def test_every_directory_with_code_is_listed() -> None:
    folders = {
        str(file.parent.relative_to(rooms.PACKAGE)) for file in rooms.PACKAGE.rglob("*/*.py")
    }
    block = README.partition("<!-- begin: trainer-rooms -->")[2].partition("<!-- end: ")[0]
    listed = set(re.findall(r"^\| `([\w/]+)/` \| \S", block, re.MULTILINE))
    assert listed == folders - ON_PATH
    parent = (rooms.PACKAGE / "injected" / "__init__.py").read_text(encoding="utf-8")
    assert all(f"{folder.rpartition('/')[2]}/" in parent for folder in ON_PATH)
