"""Anchors: the boxes from which predictions start, at every cell of a feature map.

Boxes are [ymin, xmin, ymax, xmax] in fractions of the image. Feature maps are ordered from fine to
coarse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trainer.programs.detection.config.pipeline import Anchors

Box = tuple[float, float, float, float]
Shape = tuple[float, float]
"""(height, width) of an anchor, in fractions of the image."""


@dataclass(frozen=True)
class AnchorMap:
    """The anchors of one feature map: `shapes` around the centre of each cell of its grid."""

    rows: int
    columns: int
    shapes: tuple[Shape, ...]

    def boxes(self) -> list[Box]:
        """Returns the anchors by row, column and shape, which is the order of a flattened
        prediction map."""
        return [
            (y - height / 2, x - width / 2, y + height / 2, x + width / 2)
            for y in ((row + 0.5) / self.rows for row in range(self.rows))
            for x in ((column + 0.5) / self.columns for column in range(self.columns))
            for height, width in self.shapes
        ]


def anchor_maps(options: Anchors, grids: Sequence[tuple[int, int]]) -> tuple[AnchorMap, ...]:
    """Returns the anchors for each feature map; `grids` are the maps' (rows, columns).

    Scales increase from map to map; the scale after the coarsest map's would be 1, the whole image.
    """
    scales = options.layer_scales
    return tuple(
        AnchorMap(rows, columns, shapes(options, scale, after))
        for (rows, columns), scale, after in zip(grids, scales, (*scales[1:], 1.0), strict=True)
    )


def shapes(options: Anchors, scale: float, next_scale: float) -> tuple[Shape, ...]:
    """Returns a shape of area `scale`² for each ratio, and one shape whose scale is the geometric
    mean with the next scale."""
    sizes = [shape(scale, ratio) for ratio in options.aspect_ratios]
    if options.interpolated_scale_aspect_ratio:
        between = math.sqrt(scale * next_scale)
        sizes.append(shape(between, options.interpolated_scale_aspect_ratio))
    return tuple(sizes)


def shape(scale: float, ratio: float) -> Shape:
    """Returns the shape with area `scale`² whose width is `ratio` times its height."""
    return scale / math.sqrt(ratio), scale * math.sqrt(ratio)
