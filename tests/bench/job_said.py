"""The JSON line that ends the job, found in a log."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.bench.bench import BenchError


def job_said(log: str) -> dict[str, Any]:
    """What the chief told at its end.

    Raises:
        BenchError: it told nothing, so it did not train to the end.
    """
    lines = re.findall(r'\{"steps":.*\}', log)
    if not lines:
        raise BenchError("the job did not come to its end:\n" + "\n".join(log.splitlines()[-20:]))
    found: dict[str, Any] = json.loads(lines[-1])
    return found
