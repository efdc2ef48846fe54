"""The module that a program for TensorFlow 1 gets from `import tensorflow`."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

REAL = ("compat", "__internal__", "__operators__")
"""Parts that are the same in both versions of the API, and must be found by TensorFlow itself."""
INSIDE = ("python", "core")
"""Packages below TensorFlow's own, of which programs have always used parts."""


class TensorFlow1(ModuleType):
    """`tensorflow.compat.v1` under the name `tensorflow`, with `contrib` and what is left of
    TensorFlow's own packages. What a program sets here stays here."""

    def __init__(self, tensorflow: ModuleType, contrib: object) -> None:
        super().__init__("tensorflow", "TensorFlow 1's API, by TensorFlow 2.")
        self.__file__ = tensorflow.__file__
        self.__path__ = [os.path.dirname(tensorflow.__file__)]  # noqa: PTH120
        self.__package__ = "tensorflow"
        self.__loader__ = tensorflow.__loader__
        self.__spec__ = tensorflow.__spec__
        self.__version__ = tensorflow.__version__
        self._real = tensorflow
        self._v1 = tensorflow.compat.v1
        self._contrib = contrib
        self.__all__ = sorted(name for name in dir(self._v1) if not name.startswith("_"))

    def __getattr__(self, name: str) -> object:
        if name in REAL:
            return getattr(self._real, name)
        if name == "contrib":
            return self._contrib.module("")
        try:
            return getattr(self._v1, name)
        except AttributeError:
            if name in INSIDE:
                return importlib.import_module(f"tensorflow.{name}")
            problem = self._contrib.gone(name)
        raise AttributeError(problem) from None

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self.__all__, "compat", "contrib"})
