"""With TensorFlow: writing and reading records, records of other tools, and whole conversions."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")

from made_up_records import CAT, DOG, HEIGHT, LABELS, WIDTH, changed, image, picture  # noqa: E402

from trainer.programs.detection.convert import __main__ as command  # noqa: E402
from trainer.programs.detection.data import (  # noqa: E402
    label_map,
    records,
)
from trainer.programs.detection.data.annotation import Box  # noqa: E402


def test_an_image_is_the_same_after_writing_and_reading() -> None:
    for one in (image(CAT, DOG), image()):
        again = records.from_example(records.to_example(one))
        assert again == one
    assert records.to_example(image(CAT)) == records.to_example(image(CAT))


def test_the_features_are_those_of_the_object_detection_api() -> None:
    record = records.to_example(image(CAT, DOG))
    found = tf.io.parse_single_example(
        record,
        {
            "image/encoded": tf.io.FixedLenFeature([], tf.string),
            "image/format": tf.io.FixedLenFeature([], tf.string),
            "image/height": tf.io.FixedLenFeature([], tf.int64),
            "image/width": tf.io.FixedLenFeature([], tf.int64),
            "image/filename": tf.io.FixedLenFeature([], tf.string),
            "image/source_id": tf.io.FixedLenFeature([], tf.string),
            "image/key/sha256": tf.io.FixedLenFeature([], tf.string),
            "image/object/bbox/ymin": tf.io.FixedLenFeature([2], tf.float32),
            "image/object/bbox/xmin": tf.io.FixedLenFeature([2], tf.float32),
            "image/object/bbox/ymax": tf.io.FixedLenFeature([2], tf.float32),
            "image/object/bbox/xmax": tf.io.FixedLenFeature([2], tf.float32),
            "image/object/class/text": tf.io.FixedLenFeature([2], tf.string),
            "image/object/class/label": tf.io.FixedLenFeature([2], tf.int64),
            "image/object/difficult": tf.io.FixedLenFeature([2], tf.int64),
            "image/object/is_crowd": tf.io.FixedLenFeature([2], tf.int64),
        },
    )
    assert found["image/format"] == b"png"
    assert found["image/object/class/text"].numpy().tolist() == [b"cat", b"dog"]
    assert found["image/object/bbox/xmax"].numpy().tolist() == [0.75, 1.0]
    assert tf.io.decode_png(found["image/encoded"]).shape == (HEIGHT, WIDTH, 3)


def test_records_of_other_tools_may_lack_features() -> None:
    record = changed(
        **{
            "image__object__class__text": None,
            "image__object__difficult": None,
            "image__object__is_crowd": None,
            "image__source_id": None,
        }
    )
    found = records.from_example(record)
    assert found.boxes == (dataclasses.replace(CAT, label=""),)
    assert found.source_id == ""


def test_shards_are_filled_in_turn_and_appear_only_when_complete(tmp_path: Path) -> None:
    files = records.write([image(source_id=str(i)) for i in range(5)], tmp_path / "d" / "x", 2)
    assert [file.name for file in files] == [
        "x-00000-of-00002.tfrecord",
        "x-00001-of-00002.tfrecord",
    ]
    ids = [[records.from_example(r).source_id for r in records.read(file)] for file in files]
    assert ids == [["0", "2", "4"], ["1", "3"]]

    def breaks() -> object:
        yield image()
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="disk"):
        records.write(breaks(), tmp_path / "e" / "x", 2)
    assert list((tmp_path / "e").iterdir()) == []


def test_converted_annotations_are_valid_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for name in ("a.png", "b.png"):
        (images / name).write_bytes(picture())
    file = tmp_path / "instances.json"
    content = {
        "images": [{"id": i, "file_name": f"{n}.png"} for i, n in ((1, "a"), (2, "b"))],
        "annotations": [{"image_id": 1, "category_id": 2, "bbox": [10, 5, 20, 5]}],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
    }
    file.write_text(json.dumps(content))
    arguments = ["coco", str(file), str(images), "--to", str(tmp_path / "out"), "--shards", "2"]
    assert command.main(arguments) == 0
    output = capsys.readouterr().out
    assert "images: 2, boxes: 1, classes: 2" in output
    found = [
        records.from_example(record)
        for shard in sorted((tmp_path / "out").glob("train-*"))
        for record in records.read(shard)
    ]
    assert [one.filename for one in found] == ["a.png", "b.png"]
    assert found[0].boxes == (Box(0.25, 0.25, 0.5, 0.75, "dog", 2),)
    assert label_map.read(tmp_path / "out" / "label_map.pbtxt") == LABELS
    content["categories"][0]["name"] = "cow"
    file.write_text(json.dumps(content))
    assert command.main(arguments) == 2  # Another set's label map is already in that directory.
    assert "label_map.pbtxt is there and has other classes" in capsys.readouterr().err
