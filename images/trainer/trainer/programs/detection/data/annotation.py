"""An image with its boxes, as it is written to a record and read from a record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

PNG, JPEG = "png", "jpeg"
EDGE = 1e-3
"""Tolerance for rounding: a box may be outside the image by this fraction of its size."""


@dataclass(frozen=True)
class Box:
    """The position of one object, in fractions of the image's height and width, and its class."""

    ymin: float
    xmin: float
    ymax: float
    xmax: float
    label: str
    number: int
    """The label's id in the label map."""
    difficult: bool = False
    crowd: bool = False
    """Whether the box marks a group of objects of its class (COCO's iscrowd)."""

    def problem(self) -> str:
        """Returns the reason why the position is invalid; "" if it is valid."""
        sides = (self.ymin, self.xmin, self.ymax, self.xmax)
        where = f"ymin {self.ymin:g}, xmin {self.xmin:g}, ymax {self.ymax:g}, xmax {self.xmax:g}"
        if not all(map(math.isfinite, sides)):
            return f"{where}: not a number"
        if self.ymin >= self.ymax or self.xmin >= self.xmax:
            return f"{where}: a box needs ymin < ymax and xmin < xmax"
        if min(sides) < -EDGE or max(sides) > 1 + EDGE:
            return f"{where}: outside the image; sides are fractions of it, 0 to 1"
        return ""


@dataclass(frozen=True)
class LabelledImage:
    """An encoded image and its boxes."""

    encoded: bytes
    format: str
    """PNG or JPEG."""
    height: int
    width: int
    """Pixels."""
    filename: str
    source_id: str
    boxes: tuple[Box, ...]

    def problems(self) -> Iterator[str]:
        """Yields the problems of the image and of its boxes."""
        size = image_size(self.encoded)
        if size is None:
            yield f"image/encoded ({len(self.encoded)} bytes) is not a PNG or JPEG"
        elif size != (self.height, self.width):
            yield (
                f"image/height and image/width are {self.height} and {self.width}, the image itself"
                f" is {size[0]} high and {size[1]} wide"
            )
        elif breaks_off(self.encoded):
            yield f"image/encoded ({len(self.encoded)} bytes) breaks off before the image's end"
        for index, box in enumerate(self.boxes):
            if wrong := box.problem():
                yield f"box {index} ({box.label}) has {wrong}"


def image_size(encoded: bytes) -> tuple[int, int] | None:
    """Returns (height, width) in pixels from the header of a PNG or JPEG; None for anything else.

    No pixel is decoded.
    """
    if encoded.startswith(b"\x89PNG\r\n\x1a\n") and encoded[12:16] == b"IHDR":
        return _whole(encoded[20:24]), _whole(encoded[16:20])
    if encoded.startswith(b"\xff\xd8\xff"):
        return _jpeg_size(encoded)
    return None


def image_format(encoded: bytes) -> str | None:
    """Returns PNG or JPEG by the first bytes; None for anything else."""
    if encoded.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    return JPEG if encoded.startswith(b"\xff\xd8\xff") else None


def breaks_off(encoded: bytes) -> bool:
    """Returns whether a PNG or JPEG ends before its end marker; data after the marker is
    ignored."""
    return (b"IEND" if image_format(encoded) == PNG else b"\xff\xd9") not in encoded


def _whole(octets: bytes) -> int:
    return int.from_bytes(octets, "big")


def _jpeg_size(encoded: bytes) -> tuple[int, int] | None:
    """Returns the size in a JPEG's frame segment; each segment before it has a marker and a
    length."""
    at = 2
    while at + 9 <= len(encoded):
        if encoded[at] != 0xFF:
            return None
        marker = encoded[at + 1]
        if marker == 0xFF:  # fill bytes
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _whole(encoded[at + 5 : at + 7]), _whole(encoded[at + 7 : at + 9])
        if marker == 0x01 or 0xD0 <= marker <= 0xD8:  # these segments have no length
            at += 2
            continue
        at += 2 + max(_whole(encoded[at + 2 : at + 4]), 2)
    return None
