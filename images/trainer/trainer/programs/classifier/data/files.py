"""The images on disk: `Train/ Validate/ Test/`, a folder per class, PNG or JPEG in each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trainer.errors import ContractError

TRAIN, VALIDATE, TEST = "Train", "Validate", "Test"
MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
LAYOUT = "the layout is Train/<class>/, Validate/<class>/, Test/<class>/ with PNG or JPEG files"


@dataclass(frozen=True)
class Split:
    """Image files and the class number of each, sorted by class and name."""

    name: str
    paths: tuple[str, ...]
    labels: tuple[int, ...]


def class_names(data: Path) -> tuple[str, ...]:
    """The classes: the sorted folder names of Train. ContractError if there are not two."""
    if not data.is_dir():
        raise ContractError(f"data directory {data} does not exist; {LAYOUT}; mount it there")
    names = tuple(sorted(folders(data / TRAIN)))
    if len(names) < 2:
        listed = ", ".join(names) or "none"
        raise ContractError(
            f"{data / TRAIN} has {len(names)} class folders ({listed}), and a classifier needs 2"
            f" or more; {LAYOUT}"
        )
    return names


def folders(directory: Path) -> list[str]:
    """Names of the folders in `directory`, hidden ones left out."""
    if not directory.is_dir():
        raise ContractError(f"{directory} does not exist; {LAYOUT}")
    return [path.name for path in directory.iterdir() if path.is_dir() and path.name[0] != "."]


def split(data: Path, name: str, classes: tuple[str, ...]) -> Split:
    """The files of one split. ContractError if its classes are not Train's, or one is empty."""
    differ = sorted(set(folders(data / name)) ^ set(classes))
    if differ:
        raise ContractError(
            f"class folders of {data / name} and {data / TRAIN} differ in {', '.join(differ)};"
            " give both the same class folders"
        )
    paths, labels = [], []
    for label, folder in enumerate(classes):
        images = sorted(str(p) for p in (data / name / folder).iterdir() if p.name[0] != ".")
        if not images:
            raise ContractError(
                f"{data / name / folder} holds no image, and every class needs at least one;"
                " add images or remove the class from every split"
            )
        paths += images
        labels += [label] * len(images)
    return Split(name, tuple(paths), tuple(labels))


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
