"""Patterns of log lines from TensorFlow itself that say nothing about the training. Pure."""

from __future__ import annotations

import re

_PYTHONS = r"(?!\S+ +\d+ [^\]\s]+\.py:\d+\] )"
"""Is not followed by what absl's `logging` writes before a program's own lines."""
_NATIVE = (
    r"WARNING: All log messages before absl"
    rf"|[IW]\d{{4}} {_PYTHONS}"
    r"|\d{4}-\d\d-\d\d [\d:.]+: [IW] "
    r"|(E\d{4} |\d{4}-\d\d-\d\d [\d:.]+: E ).*(Unable to register cu|failed call to cuInit"
    r"|device GPU:\d+ was not registered)"
    r"|To enable the following instructions"
)
NATIVE = re.compile(rf"^({_NATIVE})")
"""Lines of TensorFlow's C++ part: absl, oneDNN, missing CUDA, information, warnings."""
PYTHON = re.compile(r"^(DEBUG|INFO|WARNING|ERROR|CRITICAL):(tensorflow|absl):")
"""Lines of TensorFlow's Python part, which logs each line twice, the second time perhaps in another
form, if a program configures `logging` or runs by `absl.app`."""
HEADER = re.compile(r"\d\d:\d\d|tensorflow|DEBUG|INFO|WARN|ERROR|CRITICAL")
"""What a formatter of `logging` writes before a message: the time, a name, or the level."""
STACK = re.compile(
    r'^\s*File "[^"]*", line \d+|^Detected at node |^Additional GRPC error information'
    r"|^:[A-Z_]+:Error received|^Traceback \(most recent|^Original stack trace for "
    r"|^During handling of |^The above exception |^Stack trace for op definition"
    r"|^\d+ root error\(s\) found|^  \(\d+\) "
    r"|^\s*\[\[(\{\{|[A-Za-z][\w./]*\]\]\s*$)"  # of a node, not a matrix that a program prints
)
"""A line of a stack trace, or of the text that TensorFlow prints with a trace."""
ERRORS = re.compile(r"^(ERROR:tensorflow:|ERROR:absl:|[EF]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [EF] )")
"""The first line of an error of either part; a stack trace can follow."""
FOREIGN = re.compile(r'^\s*File "/(opt/(trainer|venv)|usr)/')
"""A stack frame of the image's files, not of the program."""
ANY = re.compile(
    rf"^({_NATIVE}|[IW]\d{{4}} |WARNING:tensorflow|INFO:tensorflow|WARNING:absl|INFO:absl)"
)
"""Lines of TensorFlow's Python part that TensorFlow 1 programs also use to log progress."""
INSTRUCTIONS = "Instructions for updating:"
"""The second line of a Python warning of TensorFlow that a name is deprecated; a third follows."""
