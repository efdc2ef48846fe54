"""COCO's JSON: one file with `images`, `annotations` and `categories`, and a folder of images."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainer.agent.errors import ContractError
from trainer.programs.detection.convert.source import Annotated, PixelBox, Source
from trainer.programs.detection.data.label_map import LabelMap

LAYOUT = "a COCO file is a JSON object with the lists images, annotations and categories"


def read(annotations: Path, folder: Path, labels: LabelMap | None) -> Source:
    """All images of a COCO file, their boxes, and its categories as a label map.

    Args:
        folder: where the images' `file_name`s are looked for.
        labels: a label map to use instead; classes are found in it by their names.
    Raises:
        ContractError: the file is not a COCO file.
    """
    content = load(annotations)
    problems: list[str] = []
    names = categories(content["categories"], annotations, problems)
    objects: dict[str, list[PixelBox]] = defaultdict(list)
    known = {identity(entry) for entry in content["images"]}
    for index, entry in enumerate(content["annotations"]):
        place = f"{annotations}, annotations[{index}]"
        try:
            image, box = read_object(entry, names)
        except ValueError as problem:
            problems.append(f"{place}: {problem}")
            continue
        if image not in known:
            problems.append(f"{place}: image_id {image} is the id of no image")
        objects[image].append(box)
    images = list(read_images(content["images"], annotations, folder, objects, problems))
    return Source(labels or LabelMap(names, {}), tuple(images), tuple(problems))


def load(annotations: Path) -> dict[str, list[Any]]:
    """The JSON object of a COCO file; ContractError if it is not one."""
    try:
        content = json.loads(annotations.read_text(encoding="utf-8-sig"))
    except OSError as problem:
        raise ContractError(f"{annotations} cannot be read: {problem.strerror}") from problem
    except (ValueError, RecursionError) as problem:
        raise ContractError(f"{annotations} is not JSON: {problem}; {LAYOUT}") from problem
    keys = ("images", "annotations", "categories")
    if not isinstance(content, dict):
        raise ContractError(f"{annotations}: {LAYOUT}")
    wrong = [key for key in keys if not isinstance(content.get(key), list)]
    if wrong:
        raise ContractError(f"{annotations} has no list {', '.join(wrong)}; {LAYOUT}")
    return content


def categories(entries: list[Any], annotations: Path, problems: list[str]) -> dict[int, str]:
    """Category id to name; what is wrong with one is added to `problems`."""
    names: dict[int, str] = {}
    for index, entry in enumerate(entries):
        place = f"{annotations}, categories[{index}]"
        number = entry.get("id") if isinstance(entry, dict) else None
        name = entry.get("name") if isinstance(entry, dict) else None
        if not whole(number) or number < 1 or not isinstance(name, str) or not name:
            problems.append(f"{place}: needs an id of 1 or more and a name; 0 is the background")
        elif number in names or name in names.values():
            problems.append(f"{place}: id {number} or name {name!r} is there twice")
        else:
            names[number] = name
    return names


def read_object(entry: Any, names: Mapping[int, str]) -> tuple[str, PixelBox]:
    """(id of its image, box) of one annotation. ValueError says what is wrong."""
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
    """The images with their boxes; what is wrong with one is added to `problems`."""
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        place = f"{annotations}, images[{index}]"
        name = entry.get("file_name") if isinstance(entry, dict) else None
        number = identity(entry)
        if not isinstance(name, str) or not name or not number:
            problems.append(f"{place}: needs an id and a file_name")
            continue
        if number in seen:
            problems.append(f"{place}: id {number} is there twice")
            continue
        seen.add(number)
        height, width = entry.get("height"), entry.get("width")
        yield Annotated(
            place=place,
            file=folder / name,
            filename=name,
            source_id=number,
            height=height if whole(height) else None,
            width=width if whole(width) else None,
            boxes=tuple(objects.get(number, ())),
        )


def identity(entry: Any, key: str = "id") -> str:
    """An id as text, "" if there is none: numbers as a rule, texts with some tools."""
    value = entry.get(key) if isinstance(entry, dict) else None
    return str(value) if whole(value) or isinstance(value, str) else ""


def whole(value: object) -> bool:
    """Whether a JSON value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def number_like(value: object) -> bool:
    """Whether a JSON value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
