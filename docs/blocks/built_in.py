"""The tables of built-in programs and of data sets in the image, from the catalog."""

from __future__ import annotations

from cluster_kit.programs.catalog import DATA_SETS, PROGRAMS
from docs.blocks.table import table


def programs() -> str:
    """Every program of the image: what it does, its data in the image, the styles it runs in."""
    return table(
        ("program", "what it does", "`data` in the image", "`style`"),
        [
            (f"[`{p.name}`](#{p.name})", p.help, f"`{p.sample}`" if p.sample else "none",
             ", ".join(f"`{style}`" for style in p.styles))
            for p in PROGRAMS.values()
        ],
    )  # fmt: skip


def data_sets() -> str:
    """Every data set of the image: its name as `data`, what it is, and who can read it."""
    return table(
        ("`data`", "what it is", "for"),
        [
            (f"`{name}`", found.help,
             ", ".join([*(f"`{p.name}`" for p in PROGRAMS.values() if p.sample == name),
                        "programs of your own"]))
            for name, found in DATA_SETS.items()
        ],
    )  # fmt: skip
