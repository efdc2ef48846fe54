"""Which ways of training know which of the classifier's options, from the rules that refuse."""

from __future__ import annotations

import sys

from cluster_kit.util.paths import FILES
from docs.blocks.table import table

sys.path.append(str(FILES / "images" / "trainer"))
from trainer.programs.classifier import options
from trainer.programs.classifier.option_rules import MODES, RULES


def option_modes() -> str:
    """A row for each option that not all ways of training know, then those that all know."""
    known = {rule.flag: rule.known_in for rule in RULES}
    known |= {flag_of(name): MODES for name in sorted(options.IN_EVERY_MODE)}
    rows = [
        (f"`{flag}`", *("works" if mode in modes else "refused" for mode in MODES))
        for flag, modes in known.items()
    ]
    return table(("option", *(f"`{mode}`" for mode in MODES)), rows)


def flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"
