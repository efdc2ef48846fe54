"""Makes entries of progress files, as the kit does from the lines of a task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cluster_kit.observe.progress import Entry, parsed


def as_entry(task: str, time: float, event: str, fields: Mapping[str, Any]) -> Entry:
    """Returns the entry of a line with this event and these fields."""
    found = parsed(task, json.dumps({**fields, "time": time, "event": event}).encode())
    assert found is not None, f"this is no event: {event} {fields}"
    return found
