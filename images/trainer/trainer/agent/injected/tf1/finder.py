"""Finds modules below `tensorflow` where they are today, as `tensorflow.contrib.slim` is."""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

MNIST = "examples.tutorials.mnist"
EXAMPLES = {
    f"{MNIST}.input_data": "cluster_kit_mnist.py",
    f"{MNIST}.mnist": "cluster_kit_mnist_model.py",
}
FOR_TENSORFLOW_2 = ("tensorflow_estimator", "tensorflow_hub", "tensorflow_probability")
"""Packages that are written for the TensorFlow they are installed with, and import it by its usual
name, often only when they are used."""
MOVED = {"tf_keras.legacy_tf_layers": "tf_keras.src.legacy_tf_layers"}
"""Where TensorFlow 2.21 itself looks for the layers of TensorFlow 1, and where they are."""


class Finder:
    """Stands before Python's own finders; what it does not know is theirs."""

    def __init__(self, tensorflow: ModuleType, contrib: object, load_file: object) -> None:
        self._tensorflow = tensorflow
        self._real = tensorflow._real
        self._contrib = contrib
        self._load_file = load_file
        self._folder = Path(tensorflow.__path__[0])

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises ModuleNotFoundError with what to use instead, for what is gone."""
        if name.partition(".")[0] in FOR_TENSORFLOW_2:
            return self._seeing_tensorflow_2(name, path, target)
        found = self._found(name)
        if found is None:
            return None
        return spec_from_loader(name, Found(found), is_package=hasattr(found, "__path__"))

    def _seeing_tensorflow_2(
        self, name: str, path: object, target: ModuleType | None
    ) -> ModuleSpec | None:
        """A module whose own `import tensorflow` is not exchanged."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_for_2(module: ModuleType) -> None:
            shown = sys.modules["tensorflow"]
            sys.modules["tensorflow"] = self._real
            try:
                load(module)
            finally:
                sys.modules["tensorflow"] = shown

        spec.loader.exec_module = load_for_2
        return spec

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
        """TensorFlow's examples: of them there are MNIST's `input_data` and `mnist`."""
        if file := EXAMPLES.get(below):
            return self._load_file(f"for_programs/{file}")
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
