"""Converters: what COCO and Pascal VOC annotations mean, and what is refused by name."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from PIL import Image

from trainer.errors import ContractError
from trainer.programs.detection.convert import __main__ as command
from trainer.programs.detection.convert import coco, voc
from trainer.programs.detection.convert.source import Source, labelled
from trainer.programs.detection.data import label_map
from trainer.programs.detection.data.annotation import JPEG, PNG, Box, LabelledImage, image_size

WIDTH, HEIGHT = 40, 20


def picture(form: str = "PNG", size: tuple[int, int] = (WIDTH, HEIGHT)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, (10, 200, 30)).save(file, form)
    return file.getvalue()


def coco_file(tmp_path: Path, **changes: object) -> Path:
    """Two images, one without objects; `changes` replace whole lists."""
    (tmp_path / "images").mkdir(exist_ok=True)
    (tmp_path / "images" / "a.png").write_bytes(picture())
    (tmp_path / "images" / "b.jpg").write_bytes(picture("JPEG"))
    content = {
        "images": [
            {"id": 7, "file_name": "a.png", "height": HEIGHT, "width": WIDTH},
            {"id": 8, "file_name": "b.jpg"},
        ],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 3, "bbox": [10, 5, 20, 10], "iscrowd": 0},
            {"id": 2, "image_id": 7, "category_id": 1, "bbox": [0, 0, 40.4, 20], "iscrowd": 1},
        ],
        "categories": [{"id": 1, "name": "cat"}, {"id": 3, "name": "dog"}],
        **changes,
    }
    file = tmp_path / "instances.json"
    file.write_text(json.dumps(content))
    return file


def voc_directory(tmp_path: Path) -> Path:
    root = tmp_path / "VOC"
    for folder in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name, label, difficult in (("one", "dog", 0), ("two", "cat", 1)):
        (root / "JPEGImages" / f"{name}.jpg").write_bytes(picture("JPEG"))
        (root / "Annotations" / f"{name}.xml").write_text(
            f"<annotation><filename>{name}.jpg</filename>"
            f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
            f"<object><name>{label}</name><difficult>{difficult}</difficult><bndbox>"
            "<xmin>11</xmin><ymin>6</ymin><xmax>30</xmax><ymax>15</ymax></bndbox>"
            "<part><name>head</name><bndbox><xmin>1</xmin></bndbox></part></object></annotation>"
        )
    (root / "ImageSets" / "Main" / "train.txt").write_text("one\n\n")
    return root


def all_problems(source: Source) -> list[str]:
    wrong = list(source.problems)
    for image in source.images:
        wrong += labelled(image, source.labels)[1]
    return wrong


def test_coco_boxes_become_fractions_with_their_ids(tmp_path: Path) -> None:
    source = coco.read(coco_file(tmp_path), tmp_path / "images", None)
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


def test_another_label_map_gives_the_numbers(tmp_path: Path) -> None:
    labels = label_map.of_names(["dog", "cat"])
    source = coco.read(coco_file(tmp_path), tmp_path / "images", labels)
    image, _ = labelled(source.images[0], source.labels)
    assert [(box.label, box.number) for box in image.boxes] == [("dog", 1), ("cat", 2)]


@pytest.mark.parametrize(
    ("entry", "said"),
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
def test_a_wrong_coco_annotation_is_named(tmp_path: Path, entry: dict, said: str) -> None:
    right = {"id": 1, "image_id": 7, "category_id": 3, "bbox": [10, 5, 20, 10]}
    file = coco_file(tmp_path, annotations=[{**right, **entry}])
    (problem,) = all_problems(coco.read(file, tmp_path / "images", None))
    assert said in problem and "instances.json" in problem


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"file_name": "none.png"}, "none.png cannot be read: No such file"),
        ({"height": 21}, "annotated as 40 wide and 21 high, but"),
        ({"file_name": ""}, "images[0]: needs an id and a file_name"),
        ({"id": None}, "images[0]: needs an id and a file_name"),
        ({"file_name": "../instances.json"}, "is not a PNG or JPEG"),
    ],
)
def test_a_wrong_coco_image_is_named(tmp_path: Path, entry: dict, said: str) -> None:
    right = {"id": 7, "file_name": "a.png", "height": HEIGHT, "width": WIDTH}
    file = coco_file(tmp_path, images=[{**right, **entry}], annotations=[])
    (problem,) = all_problems(coco.read(file, tmp_path / "images", None))
    assert said in problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "a COCO file is a JSON object"),
        ('{"images": [], "categories": {}}', "has no list annotations, categories"),
    ],
)
def test_a_file_that_is_no_coco_file(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(ContractError, match=said):
        coco.read(file, tmp_path, None)


def test_voc_boxes_begin_at_pixel_one_and_include_their_ends(tmp_path: Path) -> None:
    source = voc.read(voc_directory(tmp_path), None, None)
    assert source.labels.labels == {1: "cat", 2: "dog"}
    one, two = (labelled(image, source.labels)[0] for image in source.images)
    assert one.boxes == (Box(0.25, 0.25, 0.75, 0.75, "dog", 2),)
    assert two.boxes == (Box(0.25, 0.25, 0.75, 0.75, "cat", 1, difficult=True),)
    assert (one.filename, one.source_id) == ("one.jpg", "one")


def test_a_voc_split_keeps_the_numbers_of_the_whole_directory(tmp_path: Path) -> None:
    source = voc.read(voc_directory(tmp_path), "train", None)
    assert [image.source_id for image in source.images] == ["one"]
    assert source.labels.labels == {1: "cat", 2: "dog"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("<xmin>11</xmin>", "<xmin>left</xmin>", "bndbox/xmin = 'left': must be a number"),
        ("<name>dog</name>", "", "object 0 has no name"),
        ("</annotation>", "", "not XML"),
        ("<xmax>30</xmax>", "<xmax>300</xmax>", "outside the image"),
        ("<xmax>30</xmax>", "<xmax>5</xmax>", "a box needs ymin < ymax"),
        ("<width>40</width>", "<width>41</width>", "annotated as 41 wide"),
    ],
)
def test_a_wrong_voc_annotation_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    root = voc_directory(tmp_path)
    file = root / "Annotations" / "one.xml"
    file.write_text(file.read_text().replace(old, new))
    (problem,) = all_problems(voc.read(root, None, None))
    assert said in problem and "one.xml" in problem


def test_voc_directories_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="Annotations is not a directory"):
        voc.read(tmp_path, None, None)
    root = voc_directory(tmp_path)
    with pytest.raises(ContractError, match=r"no split 'val': .* splits: train"):
        voc.read(root, "val", None)
    (root / "ImageSets" / "Main" / "val.txt").write_text("three\n")
    (problem,) = all_problems(voc.read(root, "val", None))
    assert "three.xml" in problem and "cannot be read" in problem


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_an_image_that_breaks_off_is_named(tmp_path: Path, form: str) -> None:
    file = coco_file(tmp_path)
    (tmp_path / "images" / "a.png").write_bytes(picture(form)[:-12])
    (problem,) = all_problems(coco.read(file, tmp_path / "images", None))
    assert "a.png breaks off before the image's end" in problem


def test_nothing_is_written_when_something_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = voc_directory(tmp_path)
    (root / "JPEGImages" / "one.jpg").write_bytes(b"GIF89a")
    (root / "Annotations" / "two.xml").write_text("<annotation>")
    assert command.main(["voc", str(root), "--to", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "2 problems in the annotations; nothing was written" in said
    assert "one.jpg is not a PNG or JPEG" in said and "two.xml: not XML" in said
    assert "--skip-bad" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
@pytest.mark.parametrize("size", [(1, 1), (300, 7), (5, 1000)])
def test_the_size_is_read_from_the_header(form: str, size: tuple[int, int]) -> None:
    assert image_size(picture(form, size)) == (size[1], size[0])


def test_the_size_of_what_is_no_image_or_cut_off() -> None:
    assert image_size(b"") is None
    assert image_size(b"GIF89a" + bytes(50)) is None
    assert image_size(picture("JPEG")[:30]) is None
    progressive = io.BytesIO()
    Image.new("L", (9, 4)).save(progressive, "JPEG", progressive=True, comment=b"\xff\xc0" * 20)
    assert image_size(progressive.getvalue()) == (4, 9)


def test_files_of_another_conversion_would_be_read_together(tmp_path: Path) -> None:
    (tmp_path / "train-00000-of-00002.tfrecord").touch()
    (tmp_path / "train-extra-00000-of-00009.tfrecord").touch()
    command.no_others(tmp_path, "train", 2)
    command.no_others(tmp_path, "validate", 3)
    with pytest.raises(
        ContractError, match=r"1 files of another conversion \(train-00000-of-00002"
    ):
        command.no_others(tmp_path, "train", 3)
