"""One scene: some digits, each where it hides no other, and where exactly they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image

from trainer.programs.detection.scenes import canvas
from trainer.programs.detection.scenes.canvas import SIDE

Sides = tuple[int, int, int, int]
"""ymin, xmin, ymax, xmax in pixels; the last two are the first pixel outside."""
MOST_DIGITS = 5
SHORTEST, TALLEST = 22, 60
"""Pixels, before a digit is turned."""
TURN = 12
"""Degrees either way."""
INKED = 0.35
"""Cover from which a pixel belongs to the digit."""
MOST_HIDDEN = 0.15
"""Of the smaller of two digits' boxes."""
LEAST_CONTRAST = 60
"""Between ink and the mean ground under it, in 0…255 of luminance."""
LUMINANCE = np.array((0.299, 0.587, 0.114), np.float32)


@dataclass(frozen=True)
class Placed:
    """A digit in a scene."""

    name: str
    sides: Sides


@dataclass(frozen=True)
class Scene:
    """uint8 [SIDE, SIDE, 3], and the digits in it."""

    pixels: np.ndarray
    digits: tuple[Placed, ...]


def scene(random: np.random.Generator, stock: Iterator[tuple[str, np.ndarray]]) -> Scene:
    """A scene with one to five of the next digits of `stock` (name, ink [8, 8])."""
    pixels = canvas.ground(random)
    pixels = canvas.clutter(pixels, random, int(random.integers(2, 8)))
    placed: list[Placed] = []
    for _ in range(int(random.integers(1, MOST_DIGITS + 1))):
        name, ink = next(stock)
        found = room_for(ink, random, placed)
        if found is None:
            continue
        cover, sides = found
        pixels = written(pixels, cover, sides, placed, random)
        placed.append(Placed(name, sides))
    if random.random() < 0.3:
        pixels = canvas.clutter(pixels, random, 1)
    return Scene(canvas.grained(pixels, random), tuple(placed))


def room_for(
    ink: np.ndarray, random: np.random.Generator, placed: list[Placed]
) -> tuple[np.ndarray, Sides] | None:
    """(cover [SIDE, SIDE], its box) of the digit at a place that is free enough.

    None if twenty places and sizes were not free.
    """
    for _ in range(20):
        glyph = enlarged(ink, random)
        height, width = glyph.shape
        top = int(random.integers(0, SIDE - height + 1))
        left = int(random.integers(0, SIDE - width + 1))
        sides = (top, left, top + height, left + width)
        if all(hidden(sides, other.sides) <= MOST_HIDDEN for other in placed):
            cover = np.zeros((SIDE, SIDE), np.float32)
            cover[top : top + height, left : left + width] = glyph
            return cover, sides
    return None


def enlarged(ink: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The ink [8, 8] at some size, turned a little, cut to what is inked; cover in 0…1."""
    # Rather small ones: by area, as things in pictures are.
    height = SHORTEST + (TALLEST - SHORTEST) * random.uniform(0, 1) ** 1.3
    width = height * random.uniform(0.75, 1.0)
    image = Image.fromarray(np.pad(ink, 1).astype(np.float32))
    size = (round(width * 10 / 8), round(height * 10 / 8))
    image = image.resize(size, Image.Resampling.BICUBIC)
    image = image.rotate(random.uniform(-TURN, TURN), Image.Resampling.BICUBIC, expand=True)
    # 8x8 pixels enlarged are a blur; this makes an edge of it, two or three pixels wide.
    cover = np.clip((np.asarray(image) - 0.25) / 0.3, 0, 1)
    rows = np.flatnonzero(cover.max(1) >= INKED)
    columns = np.flatnonzero(cover.max(0) >= INKED)
    return cover[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def hidden(one: Sides, other: Sides) -> float:
    """The common part of two boxes, as a fraction of the smaller."""
    height = min(one[2], other[2]) - max(one[0], other[0])
    width = min(one[3], other[3]) - max(one[1], other[1])
    smaller = min((s[2] - s[0]) * (s[3] - s[1]) for s in (one, other))
    return max(height, 0) * max(width, 0) / smaller


def written(
    pixels: np.ndarray,
    cover: np.ndarray,
    sides: Sides,
    placed: list[Placed],
    random: np.random.Generator,
) -> np.ndarray:
    """The digit in a colour that stands out; some on a card of their own, which hides no other."""
    top, left, bottom, right = sides
    edge = int(random.integers(2, 7))
    card = (max(top - edge, 0), max(left - edge, 0), bottom + edge, right + edge)
    if random.random() < 0.25 and not any(hidden(card, other.sides) for other in placed):
        spread = np.zeros((SIDE, SIDE), np.float32)
        spread[card[0] : card[2], card[1] : card[3]] = 0.9
        pixels = canvas.covered(pixels, spread, random.uniform(0, 255, 3))
    ground = pixels[top:bottom, left:right].mean((0, 1)) @ LUMINANCE
    return canvas.covered(pixels, cover, ink_on(float(ground), random))


def ink_on(ground: float, random: np.random.Generator) -> np.ndarray:
    """A colour [3] whose luminance differs from the ground's by LEAST_CONTRAST or more."""
    colour = random.uniform(0, 255, 3)
    for _ in range(50):
        if abs(colour @ LUMINANCE - ground) >= LEAST_CONTRAST:
            return colour
        colour = random.uniform(0, 255, 3)
    return np.full(3, 255.0 if ground < 128 else 0.0)
