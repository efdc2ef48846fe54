"""For all suites: one profile of Hypothesis, quick and the same every time."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("kit", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("kit")
