"""Build time: write scikit-learn's copy of the UCI handwritten digits as folders of PNG files.

    TARGET/{Train,Validate,Test}/<digit>/<index>.png      8x8 pixels, greyscale

About 70, 15 and 15 % of every class. The order within a class is that of a hash of the index: the
split is the same on every machine, and does not follow the writers, who come one after the other.
The file is read straight from the package: importing scikit-learn would need SciPy as well.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import sys
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

from PIL import Image

SIDE = 8
BRIGHTEST = 16  # in the original: how many of a cell's 4x4 pixels were inked
VALIDATE_SHARE = TEST_SHARE = 0.15


def main(target: Path) -> None:
    by_digit = defaultdict(list)
    for index, (*pixels, digit) in enumerate(read_rows()):
        by_digit[digit].append((index, pixels))
    for digit, images in sorted(by_digit.items()):
        for part, members in split(images).items():
            folder = target / part / str(digit)
            folder.mkdir(parents=True)
            for index, pixels in members:
                write_png(folder / f"{index:04d}.png", pixels)


def read_rows() -> list[list[int]]:
    """64 pixels and the digit, once per image."""
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise SystemExit("scikit-learn is not installed")
    path = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    with gzip.open(path, "rt") as lines:
        return [[int(float(value)) for value in row] for row in csv.reader(lines)]


def split(images: list) -> dict[str, list]:
    shuffled = sorted(images, key=lambda image: hashlib.sha256(b"%d" % image[0]).digest())
    validate = round(len(images) * VALIDATE_SHARE)
    test = round(len(images) * TEST_SHARE)
    return {
        "Validate": shuffled[:validate],
        "Test": shuffled[validate : validate + test],
        "Train": shuffled[validate + test :],
    }


def write_png(path: Path, pixels: list[int]) -> None:
    Image.frombytes("L", (SIDE, SIDE), bytes(p * 255 // BRIGHTEST for p in pixels)).save(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
