"""Names of TensorFlow 1's time, inside TensorFlow and in numpy, whose things are elsewhere now."""

from __future__ import annotations

import importlib
import sys
import warnings
from types import ModuleType

MOVED = {
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
"""By the module, names that it has lost, and what they are in the API. tf_slim needs them, too."""
NUMPY = {"int": int, "float": float, "bool": bool, "object": object, "str": str, "complex": complex}
"""Python's own types, under the names that numpy had for them until 1.24."""


def restore(v1: ModuleType) -> None:
    """Put them back where they are missing."""
    for name, names in MOVED.items():
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        for old, new in names.items():
            if not hasattr(module, old):
                setattr(module, old, getattr(v1, new))
    numpy = sys.modules["numpy"]  # TensorFlow has imported it
    for name, kind in NUMPY.items():
        if name not in vars(numpy):
            setattr(numpy, name, kind)
    for layer in (r"`tf\.layers\.", r"`layer\.(apply|add_variable|updates)"):
        warnings.filterwarnings("ignore", message=layer)
