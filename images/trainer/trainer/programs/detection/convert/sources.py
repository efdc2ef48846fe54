"""Reads annotations of other formats: images with boxes in pixels, and the label map.

COCO's JSON is one file with `images`, `annotations` and `categories`; the images are in a separate
folder. Pascal VOC has `Annotations/<name>.xml`, `JPEGImages/<name>.jpg` and
`ImageSets/Main/<split>.txt`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from trainer.agent.errors import ContractError
from trainer.programs.detection.data import label_map
from trainer.programs.detection.data.annotation import (
    Box,
    LabelledImage,
    breaks_off,
    image_format,
    image_size,
)
from trainer.programs.detection.data.label_map import LabelMap


@dataclass(frozen=True)
class PixelBox:
    """One annotated object, with sides in pixels."""

    ymin: float
    xmin: float
    ymax: float
    xmax: float
    label: str
    difficult: bool = False
    crowd: bool = False


@dataclass(frozen=True)
class Annotated:
    """One image file and its objects; `location` is the place of the annotation, for messages."""

    location: str
    file: Path
    filename: str
    source_id: str
    height: int | None
    width: int | None
    """The annotated width; None if there is none."""
    boxes: tuple[PixelBox, ...]


@dataclass(frozen=True)
class Source:
    """A whole set of annotations; `problems` has the problems of the annotations themselves."""

    labels: LabelMap
    images: tuple[Annotated, ...]
    problems: tuple[str, ...] = ()


def labelled(image: Annotated, labels: LabelMap) -> tuple[LabelledImage | None, Sequence[str]]:
    """Returns the image for a record; None if it is invalid, after adding the reason to the
    problems."""
    try:
        encoded = image.file.read_bytes()
    except OSError as problem:
        return None, [f"{image.location}: {image.file} cannot be read: {problem.strerror}"]
    form, size = image_format(encoded), image_size(encoded)
    if form is None or size is None:
        return None, [
            f"{image.location}: {image.file} is not a PNG or JPEG; convert it to one of them"
        ]
    if breaks_off(encoded):
        return None, [f"{image.location}: {image.file} is truncated; copy it again"]
    height, width = size
    problems = []
    if (image.height or height, image.width or width) != size:
        problems.append(
            f"{image.location}: annotated as {image.width} wide and {image.height} high, but"
            f" {image.file} is {width} wide and {height} high"
        )
    boxes = []
    for index, pixels in enumerate(image.boxes):
        if pixels.label not in labels.ids:
            known = ", ".join(labels.ids)
            problems.append(
                f"{image.location}, object {index}: class {pixels.label!r} is not in the label map:"
                f" {known[:200]}"
            )
            continue
        box = scaled(pixels, height, width, labels)
        if wrong := box.problem():
            problems.append(
                f"{image.location}, object {index} ({pixels.label}): {wrong}; in pixels, of an"
                f" image {width} wide and {height} high: ymin {pixels.ymin:g},"
                f" xmin {pixels.xmin:g}, ymax {pixels.ymax:g}, xmax {pixels.xmax:g}"
            )
        boxes.append(box)
    if problems:
        return None, problems
    record = LabelledImage(
        encoded, form, height, width, image.filename, image.source_id, tuple(boxes)
    )
    return record, ()


def scaled(pixels: PixelBox, height: int, width: int, labels: LabelMap) -> Box:
    """Returns the box in fractions of the image; up to one pixel outside counts as rounding."""

    def fraction(side: float, length: int) -> float:
        return min(max(side, 0.0), length) / length if -1 <= side <= length + 1 else side / length

    return Box(
        fraction(pixels.ymin, height),
        fraction(pixels.xmin, width),
        fraction(pixels.ymax, height),
        fraction(pixels.xmax, width),
        label=pixels.label,
        number=labels.ids[pixels.label],
        difficult=pixels.difficult,
        crowd=pixels.crowd,
    )


COCO_LAYOUT = "a COCO file is a JSON object with the lists images, annotations and categories"


def read_coco(annotations: Path, folder: Path, labels: LabelMap | None) -> Source:
    """Returns all images of a COCO file with their boxes, and its categories as a label map.

    Args:
        folder: the folder of the images; their `file_name`s are relative to it.
        labels: a label map to use instead; classes are matched by name.
    Raises:
        ContractError: the file is not a COCO file.
    """
    content = load(annotations)
    problems: list[str] = []
    names = categories(content["categories"], annotations, problems)
    objects: dict[str, list[PixelBox]] = defaultdict(list)
    known = {identity(entry) for entry in content["images"]}
    for index, entry in enumerate(content["annotations"]):
        location = f"{annotations}, annotations[{index}]"
        try:
            image, box = read_coco_object(entry, names)
        except ValueError as problem:
            problems.append(f"{location}: {problem}")
            continue
        if image not in known:
            problems.append(f"{location}: image_id {image} is the id of no image")
        objects[image].append(box)
    images = list(read_images(content["images"], annotations, folder, objects, problems))
    return Source(labels or LabelMap(names, {}), tuple(images), tuple(problems))


def load(annotations: Path) -> dict[str, list[Any]]:
    """Returns the JSON object of a COCO file; ContractError if it is not one."""
    try:
        content = json.loads(annotations.read_text(encoding="utf-8-sig"))
    except OSError as problem:
        raise ContractError(f"{annotations} cannot be read: {problem.strerror}") from problem
    except (ValueError, RecursionError) as problem:
        raise ContractError(f"{annotations} is not JSON: {problem}; {COCO_LAYOUT}") from problem
    keys = ("images", "annotations", "categories")
    if not isinstance(content, dict):
        raise ContractError(f"{annotations}: {COCO_LAYOUT}")
    wrong = [key for key in keys if not isinstance(content.get(key), list)]
    if wrong:
        raise ContractError(f"{annotations} has no list {', '.join(wrong)}; {COCO_LAYOUT}")
    return content


def categories(entries: list[Any], annotations: Path, problems: list[str]) -> dict[int, str]:
    """Returns the name of each category by its id; problems are added to `problems`."""
    names: dict[int, str] = {}
    for index, entry in enumerate(entries):
        location = f"{annotations}, categories[{index}]"
        number = entry.get("id") if isinstance(entry, dict) else None
        name = entry.get("name") if isinstance(entry, dict) else None
        if not whole(number) or number < 1 or not isinstance(name, str) or not name:
            problems.append(f"{location}: needs an id of 1 or more and a name; 0 is the background")
        elif number in names or name in names.values():
            problems.append(f"{location}: id {number} or name {name!r} is there twice")
        else:
            names[number] = name
    return names


def read_coco_object(entry: Any, names: Mapping[int, str]) -> tuple[str, PixelBox]:
    """Returns (id of its image, box) of one annotation; raises ValueError with the reason."""
    if not isinstance(entry, dict):
        raise ValueError("must be an object")  # noqa: TRY004 - of JSON
    bbox = entry.get("bbox")
    if not isinstance(bbox, list) or len(bbox) != 4 or not all(map(number_like, bbox)):
        raise ValueError(f"bbox = {json.dumps(bbox)[:80]}: must be [x, y, width, height] in pixels")
    category = entry.get("category_id")
    if not whole(category) or category not in names:
        raise ValueError(f"category_id {json.dumps(category)} is the id of no category")
    x, y, width, height = map(float, bbox)
    box = PixelBox(y, x, y + height, x + width, names[category], crowd=bool(entry.get("iscrowd")))
    return identity(entry, "image_id"), box


def read_images(
    entries: list[Any],
    annotations: Path,
    folder: Path,
    objects: Mapping[str, list[PixelBox]],
    problems: list[str],
) -> Iterator[Annotated]:
    """Returns the images with their boxes; problems are added to `problems`."""
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        location = f"{annotations}, images[{index}]"
        name = entry.get("file_name") if isinstance(entry, dict) else None
        number = identity(entry)
        if not isinstance(name, str) or not name or not number:
            problems.append(f"{location}: needs an id and a file_name")
            continue
        if number in seen:
            problems.append(f"{location}: id {number} is there twice")
            continue
        seen.add(number)
        height, width = entry.get("height"), entry.get("width")
        yield Annotated(
            location=location,
            file=folder / name,
            filename=name,
            source_id=number,
            height=height if whole(height) else None,
            width=width if whole(width) else None,
            boxes=tuple(objects.get(number, ())),
        )


def identity(entry: Any, key: str = "id") -> str:
    """Returns an id as text, "" if there is none: most tools write numbers, some write texts."""
    value = entry.get(key) if isinstance(entry, dict) else None
    return str(value) if whole(value) or isinstance(value, str) else ""


def whole(value: object) -> bool:
    """Returns whether a JSON value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def number_like(value: object) -> bool:
    """Returns whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


VOC_LAYOUT = "a VOC directory has Annotations/<name>.xml and JPEGImages/<name>.jpg"
IMAGE_FOLDERS = ("JPEGImages", "Images", "images", ".")
ENDINGS = (".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG")


def read_voc(directory: Path, split: str | None, labels: LabelMap | None) -> Source:
    """Returns the images of a split and their boxes; all annotations if `split` is None.

    Without `labels` the classes are all classes in the directory's annotations, in alphabetical
    order, so that every split gets the same numbers.

    Raises:
        ContractError: the directory, the split or an annotation does not exist.
    """
    annotations = directory / "Annotations"
    if not annotations.is_dir():
        raise ContractError(f"{annotations} is not a directory; {VOC_LAYOUT}")
    everything = sorted(path.stem for path in annotations.glob("*.xml"))
    if not everything:
        raise ContractError(f"{annotations} holds no .xml file; {VOC_LAYOUT}")
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
    """Returns the names of a split's images; ContractError if the split does not exist or is
    empty."""
    file = directory / "ImageSets" / "Main" / f"{split}.txt"
    if not file.is_file():
        splits = sorted(path.stem for path in file.parent.glob("*.txt"))
        raise ContractError(
            f"no split {split!r}: {file} is not there; splits: {', '.join(splits) or 'none'}"
        )
    # A line is `<name>`; in the lists of one class it is `<name> 1`, or `<name> -1` if the class is
    # not in the image.
    rows = (line.split() for line in file.read_text(encoding="utf-8-sig").splitlines())
    names = [row[0] for row in rows if row and row[1:2] != ["-1"]]
    if not names:
        raise ContractError(f"{file} names no image")
    return list(dict.fromkeys(names))


def read_one(file: Path, directory: Path) -> Annotated:
    """Returns the image of one annotation; raises ValueError with the reason."""
    try:
        root = ElementTree.parse(file).getroot()
    except OSError as problem:
        raise ValueError(f"cannot be read: {problem.strerror}") from problem
    except ElementTree.ParseError as problem:
        raise ValueError(f"not XML: {problem}") from problem
    filename = (root.findtext("filename") or "").strip()
    return Annotated(
        location=str(file),
        file=image_file(directory, filename, file.stem),
        filename=filename or file.stem,
        source_id=file.stem,
        height=size(root, "height"),
        width=size(root, "width"),
        boxes=tuple(
            read_voc_object(element, index) for index, element in enumerate(root.iter("object"))
        ),
    )


def size(root: ElementTree.Element, key: str) -> int | None:
    """Returns the size; None if it is not given (some tools then write 0)."""
    text = (root.findtext(f"size/{key}") or "").strip()
    return int(text) or None if text.isdigit() else None


def image_file(directory: Path, filename: str, stem: str) -> Path:
    """Returns the path of the image, by the name in the annotation, else by the annotation file's
    name."""
    names = [filename] if filename else []
    names += [f"{stem}{ending}" for ending in ENDINGS]
    for folder in IMAGE_FOLDERS:
        for name in names:
            if (directory / folder / name).is_file():
                return directory / folder / name
    return directory / IMAGE_FOLDERS[0] / names[0]


def read_voc_object(element: ElementTree.Element, index: int) -> PixelBox:
    """Returns one object. VOC counts pixels from 1, and a box includes both its first and last
    pixel."""
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
