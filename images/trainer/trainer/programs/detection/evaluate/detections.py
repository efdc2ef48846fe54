"""What is in an image, and what was found in it: numpy arrays, for scoring and for drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Truth:
    """What is in one image: boxes [k, 4] (ymin, xmin, ymax, xmax), classes [k].

    Finding what is `difficult` [k] or a `crowd` [k] counts neither for nor against; all False
    if they are None.
    """

    boxes: np.ndarray
    classes: np.ndarray
    difficult: np.ndarray | None = None
    crowd: np.ndarray | None = None


@dataclass(frozen=True)
class Detected:
    """What was found in it: boxes [k, 4] (ymin, xmin, ymax, xmax), classes [k], scores [k]."""

    boxes: np.ndarray
    classes: np.ndarray
    scores: np.ndarray
