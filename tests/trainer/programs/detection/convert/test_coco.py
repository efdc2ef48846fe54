"""COCO's annotations: their meaning, and errors that name the invalid one."""

from __future__ import annotations

from pathlib import Path

import pytest
from annotated import HEIGHT, WIDTH, all_problems, coco_file, picture

from trainer.agent.errors import ContractError
from trainer.programs.detection.convert import sources
from trainer.programs.detection.convert.sources import labelled
from trainer.programs.detection.data import label_map
from trainer.programs.detection.data.annotation import JPEG, PNG, Box, LabelledImage


def test_coco_boxes_become_fractions_with_their_ids(tmp_path: Path) -> None:
    source = sources.read_coco(coco_file(tmp_path), tmp_path / "images", None)
    assert source.labels.labels == {1: "cat", 3: "dog"}
    first, second = (labelled(image, source.labels)[0] for image in source.images)
    assert first == LabelledImage(
        encoded=picture(),
        format=PNG,
        height=HEIGHT,
        width=WIDTH,
        filename="a.png",
        source_id="7",
        boxes=(
            Box(0.25, 0.25, 0.75, 0.75, "dog", 3),
            Box(0.0, 0.0, 1.0, 1.0, "cat", 1, crowd=True),
        ),
    )
    assert second.boxes == ()
    assert (second.format, second.height, second.width) == (JPEG, HEIGHT, WIDTH)
    assert not all_problems(source)


def test_another_label_map_sets_the_numbers(tmp_path: Path) -> None:
    labels = label_map.of_names(["dog", "cat"])
    source = sources.read_coco(coco_file(tmp_path), tmp_path / "images", labels)
    image, _ = labelled(source.images[0], source.labels)
    assert [(box.label, box.number) for box in image.boxes] == [("dog", 1), ("cat", 2)]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"bbox": [10, 5, 20]}, "annotations[0]: bbox = [10, 5, 20]: must be [x, y, width"),
        ({"bbox": [10, 5, True, 1]}, "annotations[0]: bbox = "),
        ({"category_id": 2}, "annotations[0]: category_id 2 is the id of no category"),
        ({"category_id": [3]}, "annotations[0]: category_id [3] is the id of no category"),
        ({"image_id": 99}, "annotations[0]: image_id 99 is the id of no image"),
        ({"bbox": [10, 5, 0, 10]}, "images[0], object 0 (dog): "),
        ({"bbox": [10, 5, -3, 10]}, "a box needs ymin < ymax and xmin < xmax"),
        ({"bbox": [30, 5, 20, 10]}, "outside the image"),
        ({"bbox": [float("nan"), 5, 20, 10]}, "not a number"),
    ],
)
def test_an_invalid_coco_annotation_is_named(tmp_path: Path, entry: dict, message: str) -> None:
    right = {"id": 1, "image_id": 7, "category_id": 3, "bbox": [10, 5, 20, 10]}
    file = coco_file(tmp_path, annotations=[{**right, **entry}])
    (problem,) = all_problems(sources.read_coco(file, tmp_path / "images", None))
    assert message in problem and "instances.json" in problem


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"file_name": "none.png"}, "none.png cannot be read: No such file"),
        ({"height": 21}, "annotated as 40 wide and 21 high, but"),
        ({"file_name": ""}, "images[0]: needs an id and a file_name"),
        ({"id": None}, "images[0]: needs an id and a file_name"),
        ({"file_name": "../instances.json"}, "is not a PNG or JPEG"),
    ],
)
def test_an_invalid_coco_image_is_named(tmp_path: Path, entry: dict, message: str) -> None:
    right = {"id": 7, "file_name": "a.png", "height": HEIGHT, "width": WIDTH}
    file = coco_file(tmp_path, images=[{**right, **entry}], annotations=[])
    (problem,) = all_problems(sources.read_coco(file, tmp_path / "images", None))
    assert message in problem


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "a COCO file is a JSON object"),
        ('{"images": [], "categories": {}}', "has no list annotations, categories"),
    ],
)
def test_a_file_that_is_not_a_coco_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(ContractError, match=message):
        sources.read_coco(file, tmp_path, None)


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_a_truncated_image_is_named(tmp_path: Path, form: str) -> None:
    file = coco_file(tmp_path)
    (tmp_path / "images" / "a.png").write_bytes(picture(form)[:-12])
    (problem,) = all_problems(sources.read_coco(file, tmp_path / "images", None))
    assert "a.png is truncated" in problem
