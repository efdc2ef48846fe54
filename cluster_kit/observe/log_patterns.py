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
PYTHON = re.compile(r"^(DEBUG|INFO|WARNING|ERROR|CRITICAL):(tensorflow|absl):")
"""Of its Python part, which logs each line twice once a program has set up `logging` itself."""
STACK = re.compile(
    r'^\s*File "[^"]*", line \d+|^Detected at node |^\s*\[\[|^Additional GRPC error information'
    r"|^:[A-Z_]+:Error received|^Traceback \(most recent|^Original stack trace for "
    r"|^During handling of |^The above exception |^Stack trace for op definition"
    r"|^\d+ root error\(s\) found|^  \(\d+\) "
)
"""A line of a stack, or of what TensorFlow prints with one."""
ERRORS = re.compile(r"^(ERROR:tensorflow:|ERROR:absl:|[EF]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [EF] )")
"""Of both parts: an error, with which a stack may follow."""
FOREIGN = re.compile(r'^\s*File "/(opt/(trainer|venv)|usr)/')
"""A frame of what the image contains, which is not the program's."""
ANY = re.compile(rf"^({_NATIVE}|WARNING:tensorflow|INFO:tensorflow|WARNING:absl|INFO:absl)")
"""Of its Python part as well, by which programs of TensorFlow 1 also log their progress."""
