"""Replaces `tensorflow` by TensorFlow 1's API; called right after `import tensorflow`.

The code that runs is TensorFlow 2 with its version 2 behaviour off. Only the program's view is
replaced: TensorFlow's own modules have imported each other by then, and later import only
`tensorflow.compat.v2` and `tensorflow.python`, which are unchanged.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

LoadFile = Callable[[str], ModuleType]


def start(tensorflow: ModuleType, load_file: LoadFile) -> ModuleType:
    """Replace `tensorflow` in sys.modules, and return the replacement."""
    v1 = tensorflow.compat.v1
    _without_warnings(v1.disable_v2_behavior)
    restore_names(v1)
    restore_flags(v1)
    contrib = load_file("tf1/contrib.py").Contrib(load_file, read_names())
    module = TensorFlow1(tensorflow, contrib)
    sys.modules["tensorflow"] = module
    sys.meta_path.insert(0, Finder(module, contrib, load_file))
    return module


def _without_warnings(switch: Callable[[], None]) -> None:
    """Call `switch` without its own warning, and suppress all further deprecation warnings: users
    know that a program for TensorFlow 1 is old."""
    from tensorflow.python.util import deprecation

    deprecation._PRINT_DEPRECATION_WARNINGS = False
    logger = logging.getLogger("tensorflow")
    logger.propagate = False  # absl would repeat its own message
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        switch()
    finally:
        logger.setLevel(level)


KEPT = ("help", "helpfull", "helpshort", "helpxml", "flagfile", "undefok", "v")


def restore_flags(v1: ModuleType) -> None:
    """Let a program define flags such as `log_dir`, which absl has already defined, and let it
    parse flags by the method's name in the first versions."""
    wrapped = v1.flags.FLAGS
    for name in list(wrapped):
        if name not in KEPT:
            wrapped[name].allow_override = True
    values = type(wrapped.__dict__["__wrapped"])
    if not hasattr(values, "_parse_flags"):
        values._parse_flags = _parse


def _parse(self: object, args: list[str] | None = None) -> dict[str, object]:
    """`FLAGS._parse_flags()`: unknown flags are left alone. The values by name."""
    self([sys.argv[0], *args] if args is not None else sys.argv, known_only=True)
    return self.flag_values_dict()


MOVED_NAMES = {
    "tensorflow.python.framework.ops": {
        "Tensor": "Tensor",
        "IndexedSlices": "IndexedSlices",
        "convert_to_tensor": "convert_to_tensor",
    },
    "tensorflow.python.ops.array_ops": {"stack": "stack", "unstack": "unstack"},
    "tensorflow.python.ops.control_flow_ops": {
        "Assert": "Assert",
        "case": "case",
        "cond": "cond",
        "while_loop": "while_loop",
    },
    "tensorflow.python.ops.variable_scope": {"variable": "Variable"},
}
"""For each module, names that it no longer has, and their names in the API. tf_slim needs them,
too."""
NUMPY = {"int": int, "float": float, "bool": bool, "object": object, "str": str, "complex": complex}
"""Python's own types, under the names that numpy had for them until 1.24."""


def restore_names(v1: ModuleType) -> None:
    """Restore missing names in modules."""
    for name, names in MOVED_NAMES.items():
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        for old, new in names.items():
            if not hasattr(module, old):
                setattr(module, old, getattr(v1, new))
    numpy = sys.modules["numpy"]  # TensorFlow has already imported it
    for name, kind in NUMPY.items():
        if name not in vars(numpy):
            setattr(numpy, name, kind)
    for layer in (r"`tf\.layers\.", r"`layer\.(apply|add_variable|updates)"):
        warnings.filterwarnings("ignore", message=layer)


FILE = Path(__file__).with_name("names.json")


def read_names() -> dict[str, Any]:
    """`contrib`: for each path below tf.contrib, its present location or what to use instead.
    `gone`: for each path below `tf`, what to use instead. `only_in_1`: names that TensorFlow 2's
    `tf` does not have, for the host."""
    return json.loads(FILE.read_text(encoding="utf-8"))


REAL = ("compat", "__internal__", "__operators__")
"""Parts that are the same in both versions of the API, and must be found by TensorFlow's own
importer."""
INSIDE = ("python", "core")
"""Subpackages of TensorFlow that programs have always used directly."""


class TensorFlow1(ModuleType):
    """`tensorflow.compat.v1` under the name `tensorflow`, with `contrib` and the remaining packages
    of TensorFlow. Attributes that a program sets here do not affect TensorFlow itself."""

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


MNIST = "examples.tutorials.mnist"
EXAMPLES = {
    f"{MNIST}.input_data": "cluster_kit_mnist.py",
    f"{MNIST}.mnist": "cluster_kit_mnist_model.py",
}
FOR_TENSORFLOW_2 = ("tensorflow_estimator", "tensorflow_hub", "tensorflow_probability")
"""Packages that are written for the TensorFlow they are installed with, and import it by its usual
name, often only when they are used."""
MOVED_MODULES = {"tf_keras.legacy_tf_layers": "tf_keras.src.legacy_tf_layers"}
"""The module in which TensorFlow 2.21 looks for TensorFlow 1's layers, and the real one."""


class Finder:
    """A module finder that comes before Python's own; it leaves unknown modules to them."""

    def __init__(self, tensorflow: ModuleType, contrib: object, load_file: object) -> None:
        self._tensorflow = tensorflow
        self._real = tensorflow._real
        self._contrib = contrib
        self._load_file = load_file
        self._folder = Path(tensorflow.__path__[0])

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise ModuleNotFoundError for a removed module, with what to use instead."""
        if name.partition(".")[0] in FOR_TENSORFLOW_2:
            return self._seeing_tensorflow_2(name, path, target)
        if f"{name}.".startswith("tensorflow.examples.") and (own := copied(name, path)):
            return own
        module = self._found(name)
        if module is None:
            return None
        return spec_from_loader(name, Found(module), is_package=hasattr(module, "__path__"))

    def _seeing_tensorflow_2(
        self, name: str, path: object, target: ModuleType | None
    ) -> ModuleSpec | None:
        """A module in which `import tensorflow` still means TensorFlow 2."""
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
        for old, new in MOVED_MODULES.items():
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
        module = _module_of(self._tensorflow, below)
        if module is None and self._contrib.reason(below):
            raise ModuleNotFoundError(self._contrib.gone(below))
        return module

    def _example(self, below: str) -> ModuleType | None:
        """A module of TensorFlow's examples; only MNIST's `input_data` and `mnist` exist."""
        if file := EXAMPLES.get(below):
            return self._load_file(f"for_programs/{file}")
        if below == MNIST or MNIST.startswith(f"{below}."):
            package = ModuleType(f"tensorflow.{below}")
            package.__path__ = []
            return package
        if self._contrib.reason(below):
            raise ModuleNotFoundError(self._contrib.gone(below))
        return None


def copied(name: str, path: object) -> ModuleSpec | None:
    """A module of TensorFlow's examples from `tensorflow/examples/` in the program's directory."""
    if name == "tensorflow.examples":
        path = [os.path.join(entry, "tensorflow") for entry in sys.path]  # noqa: PTH118
    return PathFinder.find_spec(name, path) if path else None


class Found(Loader):
    """A loader that gives an existing module another name."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = self._module


def _module_of(tensorflow: ModuleType, below: str) -> ModuleType | None:
    """The module that is an attribute of the API, or an attribute of an attribute."""
    module: object = tensorflow
    for part in below.split("."):
        module = getattr(module, part, None)
    if "LazyLoader" in type(module).__name__:
        dir(module)  # before that it does not know where its module is
        return importlib.import_module(module.__name__)
    return module if isinstance(module, ModuleType) else None
