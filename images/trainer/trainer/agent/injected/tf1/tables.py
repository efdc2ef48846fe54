"""Reads what became of the names of TensorFlow 1: names.json, which the host reads as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("names.json")


def read() -> dict[str, Any]:
    """`contrib`: by the path below tf.contrib, either where it is today or what to use instead.
    `gone`: by the path below `tf`, what to use instead. `only_in_1`: what TensorFlow 2's `tf`
    does not have, for the host."""
    return json.loads(FILE.read_text(encoding="utf-8"))
