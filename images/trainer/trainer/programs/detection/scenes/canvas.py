"""What a scene stands on: a textured ground, and strokes and shapes that are not digits.

Pixels are float32 [SIDE, SIDE, 3] in 0…255 until they are saved.
"""

from __future__ import annotations

import io
import math

import numpy as np
from PIL import Image, ImageDraw

SIDE = 128
QUALITY = 88
FINE = 2
"""Shapes are drawn this much larger and shrunk, so that their edges are smooth."""


def ground(random: np.random.Generator) -> np.ndarray:
    """Two colours mixed by clouds, a gradient or stripes, and a little grain."""
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
    """[SIDE, SIDE] in 0…1, smooth over SIDE / cells pixels."""
    coarse = Image.fromarray(random.uniform(0, 1, (cells, cells)).astype(np.float32))
    return np.clip(np.asarray(coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC)), 0, 1)


def ramp(random: np.random.Generator) -> np.ndarray:
    """[SIDE, SIDE] from 0 to 1 in some direction."""
    angle = random.uniform(0, 2 * math.pi)
    y, x = np.mgrid[0:SIDE, 0:SIDE] / (SIDE - 1)
    slope = math.cos(angle) * x + math.sin(angle) * y
    return (slope - slope.min()) / (slope.max() - slope.min())


def clutter(pixels: np.ndarray, random: np.random.Generator, count: int) -> np.ndarray:
    """`count` strokes, rings, boxes and dots over the pixels, half transparent to opaque."""
    for _ in range(count):
        mask = Image.new("L", (SIDE * FINE, SIDE * FINE))
        draw_shape(ImageDraw.Draw(mask), random)
        cover = np.asarray(mask.resize((SIDE, SIDE), Image.Resampling.BOX), np.float32) / 255
        pixels = covered(pixels, cover * random.uniform(0.4, 0.9), random.uniform(0, 255, 3))
    return pixels


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


def covered(pixels: np.ndarray, cover: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """Pixels under `cover` [SIDE, SIDE] in 0…1 of one colour [3]."""
    cover = cover[..., np.newaxis]
    return (pixels * (1 - cover) + colour * cover).astype(np.float32)


def grained(pixels: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """uint8 pixels with the noise of a camera."""
    noise = random.normal(0, random.uniform(1, 6), pixels.shape)
    return np.clip(pixels + noise, 0, 255).astype(np.uint8)


def jpeg(pixels: np.ndarray, quality: int) -> bytes:
    """The file of uint8 pixels [height, width, 3]."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=quality)
    return file.getvalue()
