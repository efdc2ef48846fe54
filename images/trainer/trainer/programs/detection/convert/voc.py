"""Pascal VOC: `Annotations/<name>.xml`, `JPEGImages/<name>.jpg`, `ImageSets/Main/<split>.txt`."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from trainer.agent.errors import ContractError
from trainer.programs.detection.convert.source import Annotated, PixelBox, Source
from trainer.programs.detection.data import label_map
from trainer.programs.detection.data.label_map import LabelMap

LAYOUT = "a VOC directory has Annotations/<name>.xml and JPEGImages/<name>.jpg"
IMAGE_FOLDERS = ("JPEGImages", "Images", "images", ".")
ENDINGS = (".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG")


def read(directory: Path, split: str | None, labels: LabelMap | None) -> Source:
    """The images of a split (of all annotations if it is None), and their boxes.

    Without `labels` the classes are those of all annotations of the directory, by their names in
    alphabetical order: every split then gets the same numbers.

    Raises:
        ContractError: there is no such directory, split, or annotation.
    """
    annotations = directory / "Annotations"
    if not annotations.is_dir():
        raise ContractError(f"{annotations} is not a directory; {LAYOUT}")
    everything = sorted(path.stem for path in annotations.glob("*.xml"))
    if not everything:
        raise ContractError(f"{annotations} holds no .xml file; {LAYOUT}")
    names = everything if split is None else names_of(directory, split)
    wanted = set(names) | (set(everything) if labels is None else set())
    annotated: dict[str, Annotated] = {}
    problems: list[str] = []
    classes: set[str] = set()
    for name in sorted(wanted):
        try:
            annotated[name] = read_one(annotations / f"{name}.xml", directory)
        except ValueError as problem:
            if name in names:
                problems.append(f"{annotations / name}.xml: {problem}")
            continue
        classes.update(box.label for box in annotated[name].boxes)
    images = tuple(annotated[name] for name in names if name in annotated)
    return Source(labels or label_map.of_names(sorted(classes)), images, tuple(problems))


def names_of(directory: Path, split: str) -> list[str]:
    """Names of the images in a split; ContractError if it does not exist or is empty."""
    file = directory / "ImageSets" / "Main" / f"{split}.txt"
    if not file.is_file():
        splits = sorted(path.stem for path in file.parent.glob("*.txt"))
        raise ContractError(
            f"no split {split!r}: {file} is not there; splits: {', '.join(splits) or 'none'}"
        )
    # `<name>`, or `<name> 1` in the lists of one class: -1 means that it is not in the image.
    rows = (line.split() for line in file.read_text(encoding="utf-8-sig").splitlines())
    names = [row[0] for row in rows if row and row[1:2] != ["-1"]]
    if not names:
        raise ContractError(f"{file} names no image")
    return list(dict.fromkeys(names))


def read_one(file: Path, directory: Path) -> Annotated:
    """One annotation. ValueError says what is wrong with it."""
    try:
        root = ElementTree.parse(file).getroot()
    except OSError as problem:
        raise ValueError(f"cannot be read: {problem.strerror}") from problem
    except ElementTree.ParseError as problem:
        raise ValueError(f"not XML: {problem}") from problem
    filename = (root.findtext("filename") or "").strip()
    return Annotated(
        place=str(file),
        file=image_file(directory, filename, file.stem),
        filename=filename or file.stem,
        source_id=file.stem,
        height=size(root, "height"),
        width=size(root, "width"),
        boxes=tuple(
            read_object(element, index) for index, element in enumerate(root.iter("object"))
        ),
    )


def size(root: ElementTree.Element, key: str) -> int | None:
    """None if it is not given; some tools write 0 for that."""
    text = (root.findtext(f"size/{key}") or "").strip()
    return int(text) or None if text.isdigit() else None


def image_file(directory: Path, filename: str, stem: str) -> Path:
    """Where the image is: by the name in the annotation, else by the annotation's own."""
    names = [filename] if filename else []
    names += [f"{stem}{ending}" for ending in ENDINGS]
    for folder in IMAGE_FOLDERS:
        for name in names:
            if (directory / folder / name).is_file():
                return directory / folder / name
    return directory / IMAGE_FOLDERS[0] / names[0]


def read_object(element: ElementTree.Element, index: int) -> PixelBox:
    """VOC counts pixels from 1, and both ends belong to the box."""
    label = (element.findtext("name") or "").strip()
    if not label:
        raise ValueError(f"object {index} has no name")
    sides = {}
    for key in ("ymin", "xmin", "ymax", "xmax"):
        text = (element.findtext(f"bndbox/{key}") or "").strip()
        try:
            sides[key] = float(text)
        except ValueError as problem:
            raise ValueError(
                f"object {index} ({label}): bndbox/{key} = {text!r}: must be a number of pixels"
            ) from problem
    return PixelBox(
        sides["ymin"] - 1,
        sides["xmin"] - 1,
        sides["ymax"],
        sides["xmax"],
        label,
        difficult=(element.findtext("difficult") or "0").strip() not in ("0", ""),
    )
