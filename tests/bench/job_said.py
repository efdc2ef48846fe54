"""Finds the JSON line at the end of the job in a log."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.bench.bench import BenchError


def job_said(log: str) -> dict[str, Any]:
    """Returns what the chief wrote at its end.

    Raises:
        BenchError: there is no such line, so the chief did not train to the end.
    """
    lines = re.findall(r'\{"steps":.*\}', log)
    if not lines:
        raise BenchError("the job did not come to its end:\n" + "\n".join(log.splitlines()[-20:]))
    found: dict[str, Any] = json.loads(lines[-1])
    return found
