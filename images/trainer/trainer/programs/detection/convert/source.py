"""What every converter gives: images by file, with boxes in pixels, and the label map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """One object as it is annotated, sides in pixels."""

    ymin: float
    xmin: float
    ymax: float
    xmax: float
    label: str
    difficult: bool = False
    crowd: bool = False


@dataclass(frozen=True)
class Annotated:
    """One image file and its objects; `place` is where the annotation stands, for messages."""

    place: str
    file: Path
    filename: str
    source_id: str
    height: int | None
    width: int | None
    """As annotated, None if it says nothing."""
    boxes: tuple[PixelBox, ...]


@dataclass(frozen=True)
class Source:
    """A whole set of annotations. `problems` are those of the annotations themselves."""

    labels: LabelMap
    images: tuple[Annotated, ...]
    problems: tuple[str, ...] = ()


def labelled(image: Annotated, labels: LabelMap) -> tuple[LabelledImage | None, Sequence[str]]:
    """The image as a record takes it, or None and what is wrong with it."""
    try:
        encoded = image.file.read_bytes()
    except OSError as problem:
        return None, [f"{image.place}: {image.file} cannot be read: {problem.strerror}"]
    form, size = image_format(encoded), image_size(encoded)
    if form is None or size is None:
        return None, [
            f"{image.place}: {image.file} is not a PNG or JPEG; convert it to one of them"
        ]
    if breaks_off(encoded):
        return None, [
            f"{image.place}: {image.file} breaks off before the image's end; copy it anew"
        ]
    height, width = size
    problems = []
    if (image.height or height, image.width or width) != size:
        problems.append(
            f"{image.place}: annotated as {image.width} wide and {image.height} high, but"
            f" {image.file} is {width} wide and {height} high"
        )
    boxes = []
    for index, pixels in enumerate(image.boxes):
        if pixels.label not in labels.ids:
            known = ", ".join(labels.ids)
            problems.append(
                f"{image.place}, object {index}: class {pixels.label!r} is not in the label map:"
                f" {known[:200]}"
            )
            continue
        box = scaled(pixels, height, width, labels)
        if wrong := box.problem():
            problems.append(
                f"{image.place}, object {index} ({pixels.label}): {wrong}; in pixels, of an image"
                f" {width} wide and {height} high: ymin {pixels.ymin:g}, xmin {pixels.xmin:g},"
                f" ymax {pixels.ymax:g}, xmax {pixels.xmax:g}"
            )
        boxes.append(box)
    if problems:
        return None, problems
    record = LabelledImage(
        encoded, form, height, width, image.filename, image.source_id, tuple(boxes)
    )
    return record, ()


def scaled(pixels: PixelBox, height: int, width: int, labels: LabelMap) -> Box:
    """In fractions of the image. Up to a pixel outside is rounding, and cut off."""

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
