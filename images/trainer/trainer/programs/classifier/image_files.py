"""Finds the images on disk (a folder of PNG or JPEG files per class) and divides them into parts.

The parts are `Train/<class>/`, `Validate/<class>/` and `Test/<class>/`; other usual names work,
too. If a part for validation or test has no folder, a fixed share of each class is taken from the
other images, by a hash of the file's name, so that all tasks and later runs agree.
"""

from __future__ import annotations

import hashlib
import random
import statistics
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.agent.errors import ContractError
from trainer.programs.classifier.options import Options

TRAIN, VALIDATE, TEST = "Train", "Validate", "Test"
NAMES = {
    TRAIN: ("Train", "train", "training"),
    VALIDATE: ("Validate", "validate", "validation", "valid", "val"),
    TEST: ("Test", "test", "testing"),
}
"""The names of a part's folder; upper and lower case do not matter."""
SHARE = 0.15
"""The share of each class for a part without a folder."""
MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
LAYOUT = (
    "the layout is a folder per class with PNG or JPEG files in it, <class>/, or Train/<class>/,"
    " Validate/<class>/ and Test/<class>/"
)


@dataclass(frozen=True)
class Split:
    """Image files and the class number of each, sorted by class and name."""

    name: str
    paths: tuple[str, ...]
    labels: tuple[int, ...]


def class_names(data: Path) -> tuple[str, ...]:
    """The classes: the sorted names of the class folders. ContractError if there are not two."""
    if not data.is_dir():
        raise ContractError(f"data directory {data} does not exist; {LAYOUT}; mount it there")
    home = part_folder(data, TRAIN) or data
    if home == data and (others := [p.name for p in folders(data) if is_part(p.name)]):
        raise ContractError(f"{data} has {others[0]}/, but no {TRAIN}/; {LAYOUT}")
    names = tuple(path.name for path in folders(home))
    if len(names) < 2:
        listed = ", ".join(names) or "none"
        raise ContractError(
            f"{home} has {len(names)} class folders ({listed}), and a classifier needs 2 or more;"
            f" {LAYOUT}"
        )
    return names


def folders(directory: Path) -> list[Path]:
    """The folders in `directory`, sorted, hidden ones left out."""
    return sorted(path for path in directory.iterdir() if path.is_dir() and path.name[0] != ".")


def part_folder(data: Path, part: str) -> Path | None:
    """The folder of TRAIN, VALIDATE or TEST, None if there is none."""
    names = {name.lower() for name in NAMES[part]}
    return next((path for path in folders(data) if path.name.lower() in names), None)


def is_part(name: str) -> bool:
    """Whether a folder of this name is that of a part."""
    return any(name.lower() in map(str.lower, names) for names in NAMES.values())


def split(data: Path, part: str, classes: tuple[str, ...], seed: int = 1) -> Split:
    """The files of one part. ContractError if its classes are not Train's, or one is empty."""
    home = part_folder(data, part)
    taken = taken_from_train(data)
    if home is None or (part == TRAIN and taken):
        home = part_folder(data, TRAIN) or data
    differ = sorted({path.name for path in folders(home)} ^ set(classes))
    if differ:
        raise ContractError(
            f"class folders of {home} and {part_folder(data, TRAIN)} differ in"
            f" {', '.join(differ)}; give both the same class folders"
        )
    paths, labels = [], []
    for label, name in enumerate(classes):
        images = images_in(home / name)
        if part == TRAIN or part in taken:
            images = divided(home / name, images, taken, seed)[part]
        paths += images
        labels += [label] * len(images)
    return Split(part, tuple(paths), tuple(labels))


def taken_from_train(data: Path) -> tuple[str, ...]:
    """The parts that have no folder: their images are taken from those of Train."""
    return tuple(part for part in (VALIDATE, TEST) if part_folder(data, part) is None)


def images_in(folder: Path) -> list[str]:
    """All files of a class, sorted; raises ContractError if there is none."""
    images = sorted(str(path) for path in folder.iterdir() if path.name[0] != ".")
    if not images:
        raise ContractError(
            f"{folder} holds no image, and every class needs at least one; add images or remove the"
            " class from every part"
        )
    return images


def divided(
    folder: Path, images: list[str], taken: tuple[str, ...], seed: int
) -> dict[str, list[str]]:
    """Train's files of a class, and the share of each part that is `taken` from them; sorted."""
    if len(images) <= len(taken):
        raise ContractError(
            f"{folder} holds {len(images)} image{'s' * (len(images) != 1)}: too few to train on and"
            f" to take {' and '.join(taken)} from; add images, or give those a folder of their own"
        )

    def by_hash(path: str) -> bytes:
        return hashlib.sha256(f"{seed}/{Path(path).name}".encode()).digest()

    left, parts = sorted(images, key=by_hash), {}
    count = max(1, round(len(images) * SHARE))
    for part in taken:
        parts[part], left = sorted(left[:count]), left[count:]
    return {**parts, TRAIN: sorted(left)}


def told(data: Path, counts: dict[str, int], seed: int) -> str:
    """Return a line about parts taken from other images; "" if all parts have folders.

    Args:
        counts: images by part.
    """
    taken = taken_from_train(data)
    if not taken:
        return ""
    absent = " and ".join(f"{part}/" for part in taken)
    shares = ", ".join(f"{counts[part]} for {part}" for part in (TRAIN, *taken))
    return (
        f"no {absent} in the data: {SHARE:.0%} of each class are kept from training for each,"
        f" chosen by --seed {seed}: {shares}"
    )


def check_images(paths: Iterable[str]) -> None:
    """Look at the first bytes of each file; ContractError names those that are not images."""
    wrong = [path for path in paths if not is_image(path)]
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise ContractError(f"{wrong[0]}{more}: not a PNG or JPEG; remove or convert it")


def is_image(path: str) -> bool:
    """Whether the file begins as a PNG or JPEG does; False if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(8).startswith(MAGIC)
    except OSError:
        return False


LOOKED_AT = 200
"""The number of random images that are checked for their size."""
ENOUGH = 224
"""Pixels a side that models of this kind are made for: no remark from there on."""
LEAST = 0.5
"""A remark if less of an image's pixels is left."""
NO_SIZE = (0x01, *range(0xD0, 0xDA))
"""Markers of a JPEG that have no length."""
NOT_A_FRAME = (0xC4, 0xC8, 0xCC)
"""Markers of a JPEG between those that begin a frame."""


def remark(paths: Sequence[str], image_size: int) -> str:
    """A warning if an input of `image_size` pixels a side throws away most of the images; or ""."""
    chosen = random.Random(1).sample(list(paths), min(LOOKED_AT, len(paths)))
    sizes = [size for size in map(size_of, chosen) if size]
    if not sizes or image_size >= ENOUGH:
        return ""
    width, height = (int(statistics.median(side)) for side in zip(*sizes))
    left = image_size**2 / (width * height)
    if left >= LEAST:
        return ""
    return (
        f"warning: --image-size {image_size} leaves {image_size**2:,} of an image's"
        f" {width * height:,} pixels ({left:.1%}): the images are {width} x {height} (median of"
        f" {len(sizes)}); use --image-size {min(width, height, ENOUGH)}, or resize them if this"
        " is intended"
    )


def size_of(path: str) -> tuple[int, int] | None:
    """(width, height) in pixels of a PNG or JPEG; None if its header has none."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(24)
            if head.startswith(b"\x89PNG"):
                return struct.unpack(">II", head[16:24])
            file.seek(2)
            while True:
                lead, marker = file.read(2)
                while marker == 0xFF:
                    (marker,) = file.read(1)
                if lead != 0xFF:
                    return None
                if marker in NO_SIZE:
                    continue
                (length,) = struct.unpack(">H", file.read(2))
                if 0xC0 <= marker <= 0xCF and marker not in NOT_A_FRAME:
                    height, width = struct.unpack(">xHH", file.read(5))
                    return width, height
                file.seek(length - 2, 1)
    except (OSError, ValueError, struct.error):
        return None


def to_train_on(options: Options) -> tuple[tuple[str, ...], Split, Split]:
    """(class names, images to train on, images to test on); ContractError if they are invalid."""
    classes = class_names(options.data)
    train, _, test = (
        split(options.data, part, classes, options.seed) for part in (TRAIN, VALIDATE, TEST)
    )
    check_images(train.paths + test.paths)
    return classes, train, test


def tell(options: Options, train: Split, test: Split) -> None:
    """Print how the kit has divided the images, and a warning if resizing loses most of them."""
    validate = split(options.data, VALIDATE, class_names(options.data), options.seed)
    counts = {part.name: len(part.paths) for part in (train, validate, test)}
    for line in (
        told(options.data, counts, options.seed),
        remark(train.paths, options.image_size),
    ):
        if line:
            print(line, flush=True)
