"""Makes one scene: some digits that hardly overlap, and the exact box of each.

The background is textured, and has strokes and shapes that are not digits. Pixels are float32
[SIDE, SIDE, 3] in 0…255 until they are saved.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

SIDE = 128
QUALITY = 88
FINE = 2
"""Shapes are drawn larger by this factor and then shrunk, so that their edges are smooth."""


def background(random: np.random.Generator) -> np.ndarray:
    """Returns two colours mixed by clouds, a gradient or stripes, with a little grain."""
    first, second = random.uniform(20, 235, (2, 3))
    second = first + (second - first) * random.uniform(0.2, 0.6)
    kind = random.choice(("clouds", "gradient", "stripes"), p=(0.5, 0.25, 0.25))
    if kind == "clouds":
        mix = clouds(random, cells=int(random.integers(3, 11)))
    elif kind == "gradient":
        mix = 0.8 * ramp(random) + 0.2 * clouds(random, cells=8)
    else:
        waves = 2 * math.pi * random.uniform(1, 5)
        mix = 0.5 + 0.35 * np.sin(ramp(random) * waves) + 0.15 * clouds(random, cells=6)
    mixed = first + (second - first) * mix[..., np.newaxis]
    return np.clip(mixed, 0, 255).astype(np.float32)


def clouds(random: np.random.Generator, cells: int) -> np.ndarray:
    """Returns [SIDE, SIDE] in 0…1, smooth over SIDE / cells pixels."""
    coarse = Image.fromarray(random.uniform(0, 1, (cells, cells)).astype(np.float32))
    return np.clip(np.asarray(coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC)), 0, 1)


def ramp(random: np.random.Generator) -> np.ndarray:
    """Returns [SIDE, SIDE] that rises from 0 to 1 in a random direction."""
    angle = random.uniform(0, 2 * math.pi)
    steps = np.arange(SIDE) / (SIDE - 1)
    slope = math.cos(angle) * steps + math.sin(angle) * steps[:, np.newaxis]
    return (slope - slope.min()) / (slope.max() - slope.min())


def clutter(pixels: np.ndarray, random: np.random.Generator, count: int) -> None:
    """Draw `count` strokes, rings, boxes and dots over the pixels, half transparent to opaque."""
    for _ in range(count):
        mask = Image.new("L", (SIDE * FINE, SIDE * FINE))
        draw_shape(ImageDraw.Draw(mask), random)
        opacity, colour = random.uniform(0.4, 0.9), random.uniform(0, 255, 3)
        if (drawn := mask.getbbox()) is None:  # all of it lies outside
            continue
        left, top = drawn[0] // FINE, drawn[1] // FINE
        right, bottom = -(-drawn[2] // FINE), -(-drawn[3] // FINE)
        part = mask.crop((left * FINE, top * FINE, right * FINE, bottom * FINE))
        part = part.resize((right - left, bottom - top), Image.Resampling.BOX)
        cover(pixels, (top, left), np.asarray(part, np.float32) / 255 * opacity, colour)


def draw_shape(draw: ImageDraw.ImageDraw, random: np.random.Generator) -> None:
    """Draw one stroke, corner, arc, box or dot at a random place, in white."""
    x, y = random.uniform(0, SIDE * FINE, 2)
    length = random.uniform(12, 60) * FINE
    width = int(random.uniform(1, 4) * FINE)
    box = (x, y, x + length, y + length * random.uniform(0.4, 1.0))
    match random.choice(("line", "corner", "arc", "box", "dot"), p=(0.3, 0.2, 0.15, 0.2, 0.15)):
        case "line":
            angle = random.uniform(0, 2 * math.pi)
            end = (x + length * math.cos(angle), y + length * math.sin(angle))
            draw.line(((x, y), end), fill=255, width=width)
        case "corner":
            points = random.uniform(-length / 2, length / 2, (3, 2)) + np.array((x, y))
            draw.line(list(map(tuple, points)), fill=255, width=width, joint="curve")
        case "arc":
            start = random.uniform(0, 360)
            draw.arc(box, start, start + random.uniform(60, 160), fill=255, width=width)
        case "box":
            draw.rectangle(box, outline=255, width=width)
        case "dot":
            radius = random.uniform(2, 8) * FINE
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)


def cover(
    pixels: np.ndarray, corner: tuple[int, int], share: np.ndarray, colour: np.ndarray
) -> None:
    """Blend pixels with one colour [3] by `share` [height, width] in 0…1, whose first pixel lies at
    `corner` (y, x)."""
    (top, left), (height, width) = corner, share.shape
    below = pixels[top : top + height, left : left + width]
    share = share[..., np.newaxis]
    below[...] = below * (1 - share) + colour * share


def grained(pixels: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return uint8 pixels with camera noise."""
    noisy = random.normal(0, random.uniform(1, 6), pixels.shape)
    noisy += pixels
    return np.clip(noisy, 0, 255, out=noisy).astype(np.uint8)


def jpeg(pixels: np.ndarray, quality: int) -> bytes:
    """Return the JPEG file of uint8 pixels [height, width, 3]."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return file.getvalue()


Sides = tuple[int, int, int, int]
"""ymin, xmin, ymax, xmax in pixels; the last two are the first pixel outside."""
MOST_DIGITS = 5
SHORTEST, TALLEST = 22, 60
"""The minimum and maximum height of a digit in pixels, before it is rotated."""
TURN = 12
"""The maximum rotation in degrees, in both directions."""
INKED = 0.35
"""The minimum cover of a pixel that belongs to the digit."""
MOST_HIDDEN = 0.15
"""The maximum overlap, as a fraction of the smaller of two digits' boxes."""
LEAST_CONTRAST = 60
"""The minimum difference of luminance (0…255) between the ink and the mean of its background."""
LUMINANCE = np.array((0.299, 0.587, 0.114), np.float32)


@dataclass(frozen=True)
class Placed:
    """A digit in a scene."""

    name: str
    sides: Sides


@dataclass(frozen=True)
class Scene:
    """An image, uint8 [SIDE, SIDE, 3], and the digits in it."""

    pixels: np.ndarray
    digits: tuple[Placed, ...]


def scene(random: np.random.Generator, stock: Iterator[tuple[str, np.ndarray]]) -> Scene:
    """Returns a scene with one to five of the next digits of `stock` (name, ink [8, 8])."""
    pixels = background(random)
    clutter(pixels, random, int(random.integers(2, 8)))
    placed: list[Placed] = []
    for _ in range(int(random.integers(1, MOST_DIGITS + 1))):
        name, ink = next(stock)
        position = free_position(ink, random, placed)
        if position is None:
            continue
        glyph, sides = position
        write(pixels, glyph, sides, placed, random)
        placed.append(Placed(name, sides))
    if random.random() < 0.3:
        clutter(pixels, random, 1)
    return Scene(grained(pixels, random), tuple(placed))


def free_position(
    ink: np.ndarray, random: np.random.Generator, placed: list[Placed]
) -> tuple[np.ndarray, Sides] | None:
    """Returns (cover in 0…1, its box) of the digit at a position that is free enough.

    Returns None if twenty attempts with random positions and sizes found none.
    """
    for _ in range(20):
        glyph = enlarged(ink, random)
        height, width = glyph.shape
        top = int(random.integers(0, SIDE - height + 1))
        left = int(random.integers(0, SIDE - width + 1))
        sides = (top, left, top + height, left + width)
        if all(hidden(sides, other.sides) <= MOST_HIDDEN for other in placed):
            return glyph, sides
    return None


def enlarged(ink: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Returns the ink [8, 8] at a random size, slightly rotated and cropped to the digit; cover in
    0…1."""
    # Small sizes are more likely, since most objects in pictures are small.
    height = SHORTEST + (TALLEST - SHORTEST) * random.uniform(0, 1) ** 1.3
    width = height * random.uniform(0.75, 1.0)
    framed = np.zeros((10, 10), np.float32)
    framed[1:-1, 1:-1] = ink
    image = Image.fromarray(framed)
    size = (round(width * 10 / 8), round(height * 10 / 8))
    image = image.resize(size, Image.Resampling.BICUBIC)
    image = image.rotate(random.uniform(-TURN, TURN), Image.Resampling.BICUBIC, expand=True)
    # Enlarged 8x8 pixels are blurred; this sharpens the edge to a width of two or three pixels.
    cover = np.clip((np.asarray(image) - 0.25) / 0.3, 0, 1)
    rows = np.flatnonzero(cover.max(1) >= INKED)
    columns = np.flatnonzero(cover.max(0) >= INKED)
    return cover[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def hidden(one: Sides, other: Sides) -> float:
    """Return the common area of two boxes, as a fraction of the smaller box."""
    height = min(one[2], other[2]) - max(one[0], other[0])
    width = min(one[3], other[3]) - max(one[1], other[1])
    smaller = min((s[2] - s[0]) * (s[3] - s[1]) for s in (one, other))
    return max(height, 0) * max(width, 0) / smaller


def write(
    pixels: np.ndarray,
    glyph: np.ndarray,
    sides: Sides,
    placed: list[Placed],
    random: np.random.Generator,
) -> None:
    """Draw the digit in a colour that stands out; some digits are on a card, which hides no other
    digit."""
    top, left, bottom, right = sides
    edge = int(random.integers(2, 7))
    card = (max(top - edge, 0), max(left - edge, 0), bottom + edge, right + edge)
    if random.random() < 0.25 and not any(hidden(card, other.sides) for other in placed):
        size = (min(card[2], SIDE) - card[0], min(card[3], SIDE) - card[1])
        cover(pixels, card[:2], np.full(size, 0.9, np.float32), random.uniform(0, 255, 3))
    ground = pixels[top:bottom, left:right].mean((0, 1)) @ LUMINANCE
    cover(pixels, (top, left), glyph, ink_on(float(ground), random))


def ink_on(ground: float, random: np.random.Generator) -> np.ndarray:
    """Returns a colour [3] whose luminance differs from the background's by LEAST_CONTRAST or
    more."""
    colour = random.uniform(0, 255, 3)
    for _ in range(50):
        if abs(colour @ LUMINANCE - ground) >= LEAST_CONTRAST:
            return colour
        colour = random.uniform(0, 255, 3)
    return np.full(3, 255.0 if ground < 128 else 0.0)
