"""Make the sample set, in two steps, of which only the second needs TensorFlow:

    python3 -m trainer.programs.detection.scenes draw DIGITS SCENES
    python3 -m trainer.programs.detection.scenes write SCENES TARGET

    TARGET/{train,validate,test}-<shard>-of-<shards>.tfrecord, label_map.pbtxt

DIGITS holds Train/, Validate/ and Test/ with a folder per digit. SCENES is a file that only the
second step reads. The scenes of a part show only digits of that part. Each part has a fixed seed:
the same digits give the same files.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from trainer.programs.detection.data.annotation import JPEG, Box, LabelledImage
from trainer.programs.detection.scenes.scene import QUALITY, SIDE, Scene, jpeg, scene


@dataclass(frozen=True)
class Part:
    """One part of the set: the folder of its digits, and its number of scenes and files."""

    name: str
    folder: str
    scenes: int
    shards: int
    seed: int


PARTS = (
    Part("train", "Train", 2000, 8, seed=1),
    Part("validate", "Validate", 250, 2, seed=2),
    Part("test", "Test", 250, 2, seed=3),
)
DIGITS = tuple("0123456789")


def draw(digits: Path, scenes: Path) -> None:
    """Write the scenes of all parts to a file."""
    drawn = {part.name: list(labelled(part, digits / part.folder)) for part in PARTS}
    scenes.write_bytes(pickle.dumps(drawn))


def write(scenes: Path, target: Path) -> None:
    """Write the records and the label map of all parts below `target`."""
    from trainer.programs.detection.data import label_map, records  # imports TensorFlow

    drawn = pickle.loads(scenes.read_bytes())
    target.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        files = records.write(drawn[part.name], target / part.name, part.shards)
        size = sum(file.stat().st_size for file in files)
        print(f"{part.name}: {part.scenes} scenes in {len(files)} files, {size / 1e6:.1f} MB")
    labels = label_map.of_names(DIGITS)
    (target / "label_map.pbtxt").write_text(labels.to_text())


def labelled(part: Part, folder: Path) -> Iterator[LabelledImage]:
    """Yields the scenes of one part, made from the digits in `folder`."""
    random = np.random.default_rng(part.seed)
    stock = endless(read_digits(folder), random)
    for index in range(part.scenes):
        name = f"{part.name}-{index:05d}"
        yield to_labelled(scene(random, stock), name)


def read_digits(folder: Path) -> list[tuple[str, np.ndarray]]:
    """Returns (digit, ink [8, 8] in 0…1) for every file."""
    return [
        (file.parent.name, np.asarray(Image.open(file), np.float32) / 255)
        for file in sorted(folder.glob("*/*.png"))
    ]


def endless(
    digits: list[tuple[str, np.ndarray]], random: np.random.Generator
) -> Iterator[tuple[str, np.ndarray]]:
    """Yields every item once, then all again in another order, without end."""
    while True:
        for index in random.permutation(len(digits)):
            yield digits[index]


def to_labelled(found: Scene, name: str) -> LabelledImage:
    """Returns the scene as a JPEG with its boxes, in fractions of the image."""
    boxes = tuple(
        Box(*(side / SIDE for side in digit.sides), label=digit.name, number=int(digit.name) + 1)
        for digit in found.digits
    )
    encoded = jpeg(found.pixels, QUALITY)
    return LabelledImage(encoded, JPEG, SIDE, SIDE, f"{name}.jpg", name, boxes)


if __name__ == "__main__":
    steps = {"draw": draw, "write": write}
    steps[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
