"""A CSV file instead of generated points: reading it, and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.agent.errors import ContractError
from trainer.programs.linear_regression import options, points_file


def written(folder: Path, text: str) -> Path:
    file = folder / "points.csv"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    "text",
    [
        "0,1\n1,3\n2,5\n",
        "x,y\n0,1\n1,3\n2,5",
        "\ufeffx,y\r\n0,1\r\n\r\n1,3\r\n2,5\r\n",
        "n,Y, x\na,1,0\nb,3,1\nc,5,2\n",
        "rooms,price\n 0 , 1e0\n1,3.0,left out\n2,+5\n",
        '"0","1"\n"1","3"\n"2","5"\n',
    ],
)
def test_points_are_read_with_and_without_a_heading(tmp_path, text):
    points = points_file.read(written(tmp_path, text))
    assert (points.x, points.y) == ((0.0, 1.0, 2.0), (1.0, 3.0, 5.0))
    assert points.line() == pytest.approx((2, 1))


def test_the_line_of_least_squares_is_found():
    assert points_file.Points((0, 1, 2, 3), (0, 2, 1, 3)).line() == pytest.approx((0.8, 0.3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "0 points; a line needs at least two points with different x"),
        ("x,y\n1,2\n1,3\n", "2 points; a line needs at least two"),
        ("0,1\n1,three\n2\n3,nan\n", r"line 2: x = '1', y = 'three'; line 3: .* y = ''; line 4"),
        ("x\n1\n2\n", "1 column; x and y must be two columns"),
        ("\n".join(f"{n},?" for n in range(12)), "and 1 more"),
    ],
)
def test_errors_are_named_with_their_line(tmp_path, text, message):
    with pytest.raises(ContractError, match=message):
        points_file.read(written(tmp_path, text))


def test_an_unreadable_file_is_named(tmp_path):
    with pytest.raises(ContractError, match=r"none\.csv: cannot be read: No such file"):
        points_file.read(tmp_path / "none.csv")
    with pytest.raises(ContractError, match="cannot be read"):
        points_file.read(tmp_path)
    (tmp_path / "latin.csv").write_bytes(b"x,y\n\xff,1\n")
    with pytest.raises(ContractError, match="cannot be read"):
        points_file.read(tmp_path / "latin.csv")


def test_the_goal_is_the_files_own_line(tmp_path):
    written(tmp_path, "x,y\n0,1\n1,3\n2,5\n")
    found = options.parse(["--csv", "points.csv", "--steps", "5"], tmp_path)
    assert (found.w, found.b, found.graph.steps) == (pytest.approx(2), pytest.approx(1), 5)
    assert options.parse(["--csv", str(tmp_path / "points.csv")], Path("/")).points == found.points
    assert options.parse([], tmp_path).points is None
    with pytest.raises(ContractError, match=r"--w, --noise: only for generated points"):
        options.parse(["--csv", "points.csv", "--w", "3", "--noise", "1"], tmp_path)
