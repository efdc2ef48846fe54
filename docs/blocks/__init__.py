"""Makers of the documentation's generated parts: a function without arguments returns Markdown.

One module per source of facts. To add a part: write its maker there, enter it in BLOCKS, put the
two markers into a page, and run `make docs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from docs.blocks import contract

BLOCKS: Mapping[str, Callable[[], str]] = {
    "contract-commands": contract.commands,
}
