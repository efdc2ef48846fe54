"""Pascal VOC's annotations: their meaning, and errors that name the invalid one."""

from __future__ import annotations

from pathlib import Path

import pytest
from annotated import all_problems, voc_directory

from trainer.agent.errors import ContractError
from trainer.programs.detection.convert import sources
from trainer.programs.detection.convert.sources import labelled
from trainer.programs.detection.data.annotation import Box


def test_voc_boxes_begin_at_pixel_one_and_include_their_ends(tmp_path: Path) -> None:
    source = sources.read_voc(voc_directory(tmp_path), None, None)
    assert source.labels.labels == {1: "cat", 2: "dog"}
    one, two = (labelled(image, source.labels)[0] for image in source.images)
    assert one.boxes == (Box(0.25, 0.25, 0.75, 0.75, "dog", 2),)
    assert two.boxes == (Box(0.25, 0.25, 0.75, 0.75, "cat", 1, difficult=True),)
    assert (one.filename, one.source_id) == ("one.jpg", "one")


def test_a_voc_split_keeps_the_numbers_of_the_whole_directory(tmp_path: Path) -> None:
    source = sources.read_voc(voc_directory(tmp_path), "train", None)
    assert [image.source_id for image in source.images] == ["one"]
    assert source.labels.labels == {1: "cat", 2: "dog"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<xmin>11</xmin>", "<xmin>left</xmin>", "bndbox/xmin = 'left': must be a number"),
        ("<name>dog</name>", "", "object 0 has no name"),
        ("</annotation>", "", "not XML"),
        ("<xmax>30</xmax>", "<xmax>300</xmax>", "outside the image"),
        ("<xmax>30</xmax>", "<xmax>5</xmax>", "a box needs ymin < ymax"),
        ("<width>40</width>", "<width>41</width>", "annotated as 41 wide"),
    ],
)
def test_an_invalid_voc_annotation_is_named(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    root = voc_directory(tmp_path)
    file = root / "Annotations" / "one.xml"
    file.write_text(file.read_text().replace(old, new))
    (problem,) = all_problems(sources.read_voc(root, None, None))
    assert message in problem and "one.xml" in problem


def test_directories_that_are_no_voc_directory(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="Annotations is not a directory"):
        sources.read_voc(tmp_path, None, None)
    root = voc_directory(tmp_path)
    with pytest.raises(ContractError, match=r"no split 'val': .* splits: train"):
        sources.read_voc(root, "val", None)
    (root / "ImageSets" / "Main" / "val.txt").write_text("three\n")
    (problem,) = all_problems(sources.read_voc(root, "val", None))
    assert "three.xml" in problem and "cannot be read" in problem
