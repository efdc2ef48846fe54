"""Converters: the size of images; nothing invalid or mixed is written."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from annotated import picture, voc_directory
from PIL import Image

from trainer.agent.errors import ContractError
from trainer.programs.detection.convert import __main__ as command
from trainer.programs.detection.data.annotation import image_size


def test_nothing_is_written_if_there_are_problems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = voc_directory(tmp_path)
    (root / "JPEGImages" / "one.jpg").write_bytes(b"GIF89a")
    (root / "Annotations" / "two.xml").write_text("<annotation>")
    assert command.main(["voc", str(root), "--to", str(tmp_path / "out")]) == 2
    output = capsys.readouterr().err
    assert "2 problems in the annotations; nothing was written" in output
    assert "one.jpg is not a PNG or JPEG" in output and "two.xml: not XML" in output
    assert "--skip-bad" in output
    assert not (tmp_path / "out").exists()
    assert command.main(["voc", str(root), "--to", str(tmp_path / "out"), "--skip-bad"]) == 2
    assert "2 problems, left out:" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
@pytest.mark.parametrize("size", [(1, 1), (300, 7), (5, 1000)])
def test_the_size_is_read_from_the_header(form: str, size: tuple[int, int]) -> None:
    assert image_size(picture(form, size)) == (size[1], size[0])


def test_the_size_of_invalid_or_truncated_images() -> None:
    assert image_size(b"") is None
    assert image_size(b"GIF89a" + bytes(50)) is None
    assert image_size(picture("JPEG")[:30]) is None
    progressive = io.BytesIO()
    Image.new("L", (9, 4)).save(progressive, "JPEG", progressive=True, comment=b"\xff\xc0" * 20)
    assert image_size(progressive.getvalue()) == (4, 9)


def test_files_of_another_conversion_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train-00000-of-00002.tfrecord").touch()
    (tmp_path / "train-extra-00000-of-00009.tfrecord").touch()
    command.no_others(tmp_path, "train", 2)
    command.no_others(tmp_path, "validate", 3)
    with pytest.raises(
        ContractError, match=r"1 files of another conversion \(train-00000-of-00002"
    ):
        command.no_others(tmp_path, "train", 3)
