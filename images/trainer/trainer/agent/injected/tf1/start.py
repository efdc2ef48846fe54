"""Puts TensorFlow 1's API in TensorFlow's place; called right after `import tensorflow`.

What runs is TensorFlow 2 with its version 2 behaviour off. Only what a program sees is exchanged:
TensorFlow's own modules have imported what they need from each other by then, and ask for
`tensorflow.compat.v2` and `tensorflow.python` later, which stay what they are.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from types import ModuleType

LoadFile = Callable[[str], ModuleType]


def start(tensorflow: ModuleType, load_file: LoadFile) -> ModuleType:
    """Exchange `tensorflow` in sys.modules, and return what is there now."""
    v1 = tensorflow.compat.v1
    _without_warnings(v1.disable_v2_behavior)
    load_file("tf1/old_names.py").restore(v1)
    load_file("tf1/flags.py").restore(v1)
    contrib = load_file("tf1/contrib.py").Contrib(load_file, load_file("tf1/tables.py").read())
    module = load_file("tf1/module.py").TensorFlow1(tensorflow, contrib)
    sys.modules["tensorflow"] = module
    sys.meta_path.insert(0, load_file("tf1/finder.py").Finder(module, contrib, load_file))
    return module


def _without_warnings(switch: Callable[[], None]) -> None:
    """Call `switch`, which warns of itself, and let nothing else be called deprecated: who runs a
    program for TensorFlow 1 knows that it is old."""
    from tensorflow.python.util import deprecation

    deprecation._PRINT_DEPRECATION_WARNINGS = False
    logger = logging.getLogger("tensorflow")
    logger.propagate = False  # absl would say again what it says itself
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        switch()
    finally:
        logger.setLevel(level)
