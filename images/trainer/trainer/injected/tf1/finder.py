"""Finds modules below `tensorflow` where they are today, as `tensorflow.contrib.slim` is."""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

MNIST = "examples.tutorials.mnist"
MOVED = {"tf_keras.legacy_tf_layers": "tf_keras.src.legacy_tf_layers"}
"""Where TensorFlow 2.21 itself looks for the layers of TensorFlow 1, and where they are."""


class Finder:
    """Stands before Python's own finders; what it does not know is theirs."""

    def __init__(self, tensorflow: ModuleType, contrib: object, load_file: object) -> None:
        self._tensorflow = tensorflow
        self._contrib = contrib
        self._load_file = load_file
        self._folder = Path(tensorflow.__path__[0])

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises ModuleNotFoundError with what to use instead, for what is gone."""
        found = self._found(name)
        if found is None:
            return None
        return spec_from_loader(name, Found(found), is_package=hasattr(found, "__path__"))

    def _found(self, name: str) -> ModuleType | None:
        for old, new in MOVED.items():
            if name == old or name.startswith(f"{old}."):
                return importlib.import_module(new + name.removeprefix(old))
        top, _, below = name.partition(".")
        if top != "tensorflow" or not below:
            return None
        first, _, rest = below.partition(".")
        if first == "contrib":
            return self._contrib.module(rest, imported=True)
        if first == "examples":
            return self._example(below)
        if first != "compat" and (self._folder / first).is_dir():
            return None
        found = _module_of(self._tensorflow, below)
        if found is None and self._contrib.reason(below):
            raise ModuleNotFoundError(self._contrib.gone(below))
        return found

    def _example(self, below: str) -> ModuleType | None:
        """TensorFlow's examples: of them there is MNIST's `input_data`."""
        if below == f"{MNIST}.input_data":
            return self._load_file("for_programs/cluster_kit_mnist.py")
        if below == MNIST or MNIST.startswith(f"{below}."):
            package = ModuleType(f"tensorflow.{below}")
            package.__path__ = []
            return package
        if self._contrib.reason(below):
            raise ModuleNotFoundError(self._contrib.gone(below))
        return None


class Found(Loader):
    """Gives a module that exists already another name."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = self._module


def _module_of(tensorflow: ModuleType, below: str) -> ModuleType | None:
    """The module that is an attribute, or an attribute's attribute, of the API."""
    found: object = tensorflow
    for part in below.split("."):
        found = getattr(found, part, None)
    if "LazyLoader" in type(found).__name__:
        dir(found)  # before that it does not know where its module is
        return importlib.import_module(found.__name__)
    return found if isinstance(found, ModuleType) else None
