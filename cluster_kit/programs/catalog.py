"""The table of built-in programs and data sets for the host.

A new one is a row here, a package below trainer/programs/ (or a directory in the Dockerfile), and a
chapter in docs/built-in.md; tests compare the three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cluster_kit.roles import Style

DATA_SETS_IN_IMAGE = "/opt/datasets"


@dataclass(frozen=True)
class BuiltIn:
    """A built-in program: the styles that it supports, and the data that it reads."""

    name: str
    help: str
    styles: tuple[Style, ...] = ("coordinator", "all-tasks")
    between_graph: bool = False
    """Whether replicas share their variables on a ps: more than one replica then needs a ps."""
    sample: str = ""
    """The only built-in data set that it can read; "" for a program that reads none."""
    folders: tuple[tuple[str, ...], ...] = ()
    """For each part of a user's own images, the names that its folder may have; training comes
    first. If images are directly in class folders, the program divides them."""
    pipeline: str = ""
    """The configuration file that it reads in its data set, unless an argument names another."""
    scores: bool = True
    """Whether its evaluator scores checkpoints; otherwise a cluster that runs it has none."""
    data_service: bool = False
    """Whether it lets data workers prepare its input, if there are any."""
    steps: tuple[str, ...] = ()
    """The options whose product is the number of training steps."""
    modules: tuple[str, ...] = ("numpy", "tf_keras")
    """The packages it imports besides TensorFlow; the kit's image has all of them."""
    python: tuple[int, int] = (3, 9)
    """The oldest Python that runs it."""

    @property
    def package(self) -> str:
        """Its package below trainer/programs/."""
        return self.name.replace("-", "_")


@dataclass(frozen=True)
class DataSet:
    """A directory of the image below `DATA_SETS_IN_IMAGE`; `help` is Markdown for the docs."""

    name: str
    help: str

    @property
    def path(self) -> str:
        """Its path in every container."""
        return f"{DATA_SETS_IN_IMAGE}/{self.name}"


_PROGRAMS = (
    BuiltIn(
        "classifier",
        "Trains an image classifier, a small network or MobileNetV2, in every style.",
        sample="digits",
        folders=(
            ("Train", "train", "training"),
            ("Validate", "validate", "validation", "valid", "val"),
            ("Test", "test", "testing"),
        ),
        data_service=True,
        steps=("--epochs", "--steps-per-epoch"),
    ),
    BuiltIn(
        "linear-regression",
        "Fits a line in graph mode: the smallest training with parameter servers.",
        styles=("all-tasks",),
        between_graph=True,
        scores=False,
        steps=("--steps",),
        modules=("numpy",),
    ),
    BuiltIn(
        "detection",
        "Trains an SSD object detector: asynchronously, synchronously, or under a coordinator.",
        between_graph=True,
        sample="digit-scenes",
        pipeline="pipeline.toml",
        steps=("--steps",),
        modules=("numpy", "tf_keras", "PIL", "pydantic", "pycocotools"),
        python=(3, 11),
    ),
)
_DATA_SETS = (
    DataSet(
        "digits",
        "scikit-learn's copy of the UCI handwritten digits as PNG files of 8 x 8 pixels: about "
        "70 % to train on, 15 % to validate on and 15 % to test on",
    ),
    DataSet(
        "digit-scenes",
        "images of 128 x 128 pixels with several digits, as TFRecords "
        "([more](detection.md#the-sample-set))",
    ),
)
PROGRAMS: Mapping[str, BuiltIn] = MappingProxyType({row.name: row for row in _PROGRAMS})
DATA_SETS: Mapping[str, DataSet] = MappingProxyType({row.name: row for row in _DATA_SETS})
