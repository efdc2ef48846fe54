"""Reads points from a CSV file: x and y in each line, with or without a heading."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from trainer.agent.errors import ContractError

LEAST = 2
"""The number of points with different x that a line needs."""
SHOWN = 10


@dataclass(frozen=True)
class Points:
    """All points of a file, in the order of its lines."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def line(self) -> tuple[float, float]:
        """Returns (w, b) of the least-squares line."""
        count = len(self.x)
        mean_x, mean_y = math.fsum(self.x) / count, math.fsum(self.y) / count
        spread = math.fsum((x - mean_x) ** 2 for x in self.x)
        together = math.fsum((x - mean_x) * (y - mean_y) for x, y in zip(self.x, self.y))
        w = together / spread
        return w, mean_y - w * mean_x


def read(file: Path) -> Points:
    """Returns the points of a CSV file: the columns x and y of its heading, else the first two.

    Raises:
        ContractError: the file cannot be read, or has invalid lines; the message names them by
        number.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            rows = [(number, row) for number, row in enumerate(csv.reader(text), 1) if any(row)]
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise ContractError(
            f"--csv {file}: cannot be read: {reason}; give the path of a CSV file in the data"
            " directory, the manifest's `data`"
        ) from problem
    columns = (0, 1)
    if rows and not all(map(is_number, rows[0][1][:2])):
        columns = headed(file, rows.pop(0)[1])
    problems, points = [], []
    for number, row in rows:
        cells = [row[column].strip() if column < len(row) else "" for column in columns]
        if all(map(is_number, cells)):
            points.append((float(cells[0]), float(cells[1])))
        else:
            problems.append(f"line {number}: x = {cells[0]!r}, y = {cells[1]!r}")
    if problems:
        more = f", and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise ContractError(
            f"--csv {file}: x and y must be finite numbers: {'; '.join(problems[:SHOWN])}{more}"
        )
    if len({x for x, _ in points}) < LEAST:
        raise ContractError(
            f"--csv {file}: {len(points)} points; a line needs at least two points with different x"
        )
    return Points(*(tuple(side) for side in zip(*points)))


def headed(file: Path, heading: list[str]) -> tuple[int, int]:
    """Returns the columns x and y of the heading; the first two if the heading has no such names.

    Raises:
        ContractError: there is only one column.
    """
    names = [name.strip().lower() for name in heading]
    if "x" in names and "y" in names:
        return names.index("x"), names.index("y")
    if len(names) < LEAST:
        raise ContractError(f"--csv {file}: {len(names)} column; x and y must be two columns")
    return 0, 1


def is_number(text: str) -> bool:
    """Returns whether the text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
