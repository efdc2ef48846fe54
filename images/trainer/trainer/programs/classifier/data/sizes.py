"""The sizes of image files, read from their heads, and whether a model's input suits them."""

from __future__ import annotations

import random
import statistics
import struct
from collections.abc import Sequence
from pathlib import Path

LOOKED_AT = 200
"""So many images, drawn by chance, tell how large they are."""
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
        f" {len(sizes)}); take --image-size {min(width, height, ENOUGH)}, or resize them if that"
        " is meant"
    )


def size_of(path: str) -> tuple[int, int] | None:
    """(width, height) in pixels of a PNG or JPEG; None if its head does not say."""
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
