"""Patterns of log lines from TensorFlow itself that say nothing about the training. Pure."""

from __future__ import annotations

import re

_NATIVE = (
    r"WARNING: All log messages before absl"
    r"|[IW]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [IW] "
    r"|(E\d{4} |\d{4}-\d\d-\d\d [\d:.]+: E ).*(Unable to register cu|failed call to cuInit)"
    r"|To enable the following instructions"
)
NATIVE = re.compile(rf"^({_NATIVE})")
"""Of its C++ part: absl's and oneDNN's lines at the start, absent CUDA, information, warnings."""
ANY = re.compile(rf"^({_NATIVE}|WARNING:tensorflow|INFO:tensorflow|WARNING:absl|INFO:absl)")
"""Of its Python part as well, by which programs of TensorFlow 1 also log their progress."""
