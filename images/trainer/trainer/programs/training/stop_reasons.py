"""Why a training ended: the key `reached` of its result."""

from __future__ import annotations

STEPS = "steps"
"""The last step was made."""
THRESHOLD = "loss-threshold"
"""The mean loss was no longer above the threshold."""
NOTHING = "nothing"
"""Nothing was left to do: an earlier run had made the last step."""
