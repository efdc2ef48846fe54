"""What TensorFlow says for its own sake, as patterns of a line's beginning. Pure."""

from __future__ import annotations

import re

_NATIVE = (
    r"WARNING: All log messages before absl"
    r"|[IW]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [IW] "
    r"|(E\d{4} |\d{4}-\d\d-\d\d [\d:.]+: E ).*(Unable to register cu|failed call to cuInit)"
    r"|To enable the following instructions"
)
NATIVE = re.compile(rf"^({_NATIVE})")
"""Of its C++ side: absl's and oneDNN's lines at the start, CUDA that is not there, and whatever
else is information or a warning."""
ANY = re.compile(rf"^({_NATIVE}|WARNING:tensorflow|INFO:tensorflow|WARNING:absl|INFO:absl)")
"""Of its Python side as well, where programs of TensorFlow 1 also tell their progress."""
