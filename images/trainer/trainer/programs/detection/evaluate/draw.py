"""Draws images with their ground truth and their detections; it does not use TensorFlow."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont


@dataclass(frozen=True)
class Truth:
    """The ground truth of an image: boxes [k, 4] (ymin, xmin, ymax, xmax), classes [k].

    Objects that are `difficult` [k] or a `crowd` [k] do not affect the score; None: no object is.
    """

    boxes: np.ndarray
    classes: np.ndarray
    difficult: np.ndarray | None = None
    crowd: np.ndarray | None = None


@dataclass(frozen=True)
class Detected:
    """The detections in an image: boxes [k, 4] (ymin, xmin, ymax, xmax), classes [k], scores
    [k]."""

    boxes: np.ndarray
    classes: np.ndarray
    scores: np.ndarray


FOUND, WANTED, EDGE, PAPER = (226, 26, 60), (40, 220, 90), (0, 0, 0), (250, 250, 250)
SMALLEST_SIDE = 320
"""The minimum side of a drawn image in pixels, so that names are also legible on small images."""
GAP = 8
Sides = tuple[float, float, float, float]


def drawn(
    image: np.ndarray,
    detected: Detected,
    truth: Truth | None,
    names: Mapping[int, str],
    min_score: float = 0.4,
) -> Image.Image:
    """Returns the image (uint8 [h, w, 3]) with the detections in red, drawn over the ground truth
    in green.

    Boxes are ymin, xmin, ymax, xmax in fractions of the image. Detections with a score of
    `min_score` or more have a name and a score. Names are drawn over all frames, and better
    detections over worse ones.
    """
    scale = max(1, -(-SMALLEST_SIDE // min(image.shape[:2])))
    height, width = (side * scale for side in image.shape[:2])
    picture = Image.fromarray(image).resize((width, height), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(picture)
    thick = max(3, min(width, height) // 120)
    font = ImageFont.load_default(max(14, min(width, height) // 22))
    for box in () if truth is None else truth.boxes:
        framed(draw, placed(box, width, height), WANTED, thick)
    shown = [
        i for i in np.argsort(detected.scores, kind="stable") if detected.scores[i] >= min_score
    ]
    boxes = [placed(detected.boxes[index], width, height) for index in shown]
    for box in boxes:
        framed(draw, box, FOUND, thick)
    for index, box in zip(shown, boxes, strict=True):
        number = int(detected.classes[index])
        text = f"{names.get(number, number)}  {float(detected.scores[index]):.2f}"
        tagged(draw, box, text, font, picture.size)
    return picture


def jpeg(picture: Image.Image) -> bytes:
    """Returns the picture as a JPEG, which has a quarter of the size of a PNG."""
    content = io.BytesIO()
    picture.save(content, format="JPEG", quality=80)
    return content.getvalue()


def placed(box: np.ndarray, width: int, height: int) -> Sides:
    """Returns left, top, right, bottom in pixels, inside the picture."""
    ymin, xmin, ymax, xmax = (min(max(float(side), 0.0), 1.0) for side in box)
    return xmin * (width - 1), ymin * (height - 1), xmax * (width - 1), ymax * (height - 1)


def framed(draw: ImageDraw.ImageDraw, box: Sides, colour: tuple[int, ...], thick: int) -> None:
    """Draw a frame with a thin dark edge, so that it is visible on any background."""
    left, top, right, bottom = box
    # A model can predict boxes with swapped corners.
    right, bottom = max(right, left), max(bottom, top)
    draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), outline=EDGE, width=thick + 2)
    draw.rectangle((left, top, right, bottom), outline=colour, width=thick)


def tagged(
    draw: ImageDraw.ImageDraw,
    box: Sides,
    text: str,
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
    size: tuple[int, int],
) -> None:
    """Draw the text above the box, or inside it if there is no space above."""
    _, _, width, height = draw.textbbox((0, 0), text, font=font)
    width, height = width + 6, height + 4
    left = min(max(box[0] - 1, 0), max(size[0] - width, 0))
    top = box[1] - height if box[1] >= height else box[1]
    draw.rectangle((left, top, left + width, top + height), fill=FOUND)
    draw.text((left + 3, top + 1), text, fill=PAPER, font=font)


def sheet(images: Sequence[Image.Image], columns: int = 4) -> Image.Image:
    """Returns the images in rows of `columns`, with a legend; ValueError if there are no images."""
    if not images:
        raise ValueError("a sheet of no images")
    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    width, height = max(i.width for i in images), max(i.height for i in images)
    font = ImageFont.load_default(18)
    legend = 34
    paper = Image.new(
        "RGB",
        (columns * (width + GAP) + GAP, rows * (height + GAP) + GAP + legend),
        PAPER,
    )
    for index, image in enumerate(images):
        row, column = divmod(index, columns)
        paper.paste(image, (GAP + column * (width + GAP), GAP + row * (height + GAP)))
    draw = ImageDraw.Draw(paper)
    left, top = GAP, paper.height - legend
    for colour, text in ((WANTED, "ground truth"), (FOUND, "detected: class and score")):
        framed(draw, (left + 2, top + 6, left + 22, top + 24), colour, 3)
        draw.text((left + 32, top + 4), text, fill=EDGE, font=font)
        left += 60 + int(draw.textlength(text, font=font))
    return paper
