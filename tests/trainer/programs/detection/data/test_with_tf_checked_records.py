"""With TensorFlow: valid records are counted, and every invalid one is named with file and
number."""

from __future__ import annotations

import dataclasses
import os
import random
from pathlib import Path

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")

from made_up_records import CAT, DOG, LABELS, changed, image, picture  # noqa: E402

from trainer.agent.errors import ContractError  # noqa: E402
from trainer.programs.detection.config.pipeline import Pipeline  # noqa: E402
from trainer.programs.detection.data import label_map, record_check, records  # noqa: E402
from trainer.programs.detection.data.annotation import LabelledImage  # noqa: E402


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Two training files of two images, one evaluation file."""
    records.write([image(CAT), image(DOG, CAT), image(), image(CAT)], tmp_path / "train", 2)
    records.write([image(DOG)], tmp_path / "val", 1)
    (tmp_path / "map.pbtxt").write_text(LABELS.to_text())
    reader = {"label_map_path": str(tmp_path / "map.pbtxt")}
    return Pipeline.model_validate(
        {
            "model": {"num_classes": 2},
            "train_config": {
                "num_steps": 1,
                "learning_rate": {"type": "constant", "learning_rate": 0.1},
            },
            "train_input_reader": {**reader, "input_path": (str(tmp_path / "train-*"),)},
            "eval_input_reader": {**reader, "input_path": (str(tmp_path / "val-*"),)},
        }
    )


def spoil(tmp_path: Path, *made: bytes | LabelledImage) -> Path:
    """Replace the second training file by these records."""
    file = tmp_path / "train-00001-of-00002.tfrecord"
    with tf.io.TFRecordWriter(str(file)) as writer:
        for one in made:
            writer.write(one if isinstance(one, bytes) else records.to_example(one))
    return file


def test_valid_records_are_counted(pipeline: Pipeline) -> None:
    checked = record_check.check(pipeline)
    assert checked.labels == LABELS
    assert (checked.train.images, checked.train.boxes, checked.train.most_boxes) == (4, 4, 2)
    assert checked.train.per_class == {1: 3, 2: 1}
    assert (checked.evaluation.images, checked.evaluation.per_class) == (1, {2: 1})
    assert [Path(file).name for file in checked.train.files] == [
        "train-00000-of-00002.tfrecord",
        "train-00001-of-00002.tfrecord",
    ]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (image(dataclasses.replace(CAT, number=3)), "box 0 has label 3 (cat), not in the label"),
        (image(dataclasses.replace(CAT, number=0)), "box 0 has label 0 (cat), not in the label"),
        (image(dataclasses.replace(CAT, number=2)), "is a 'cat' with label 2, which the label map"),
        (image(dataclasses.replace(CAT, xmax=1.2)), "xmax 1.2: outside the image"),
        (image(dataclasses.replace(CAT, ymin=-0.1)), "ymin -0.1, xmin 0.25"),
        (image(dataclasses.replace(CAT, ymin=0.6)), "a box needs ymin < ymax and xmin < xmax"),
        (image(CAT, dataclasses.replace(CAT, xmin=float("nan"))), "box 1 (cat) has ymin 0.25"),
        (image(dataclasses.replace(CAT, xmin=float("-inf"))), "not a number"),
        (image(CAT, encoded=b"<html>no such image</html>"), "(26 bytes) is not a PNG or JPEG"),
        (image(CAT, encoded=picture()[:-8]), "bytes) breaks off before the image's end"),
        (image(CAT, encoded=b""), "(0 bytes) is not a PNG or JPEG"),
        (image(CAT, height=21), "are 21 and 40, the image itself is 20 high and 40 wide"),
        (b"no example", "not a tf.train.Example"),
        (changed(image__height=None), "needs one value of image/height"),
        (changed(image__height=[1.5]), "image/height is a float_list, must be a int64_list"),
        (changed(image__object__bbox__xmin=[0.1, 0.2]), "image/object/bbox/xmin has 2 entries"),
        (changed(image__object__class__label=None), "image/object/class/label has 0 entries"),
    ],
    # Not by bytes: every process writes the features of an example in a different order.
    ids=lambda value: value if isinstance(value, str) else "record",
)
def test_an_invalid_record_is_named_with_its_file_and_number(
    pipeline: Pipeline, tmp_path: Path, record: LabelledImage | bytes, message: str
) -> None:
    file = spoil(tmp_path, image(CAT), record)
    with pytest.raises(ContractError) as found:
        record_check.check(pipeline)
    assert f"{file}, record 1: " in str(found.value)
    assert message in str(found.value)
    assert "train_input_reader: 1 problem" in str(found.value)


def test_all_invalid_records_of_all_files_are_reported_and_many_are_counted(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    spoil(tmp_path, *[image(dataclasses.replace(CAT, number=9))] * 30)
    (tmp_path / "train-empty.tfrecord").write_bytes(b"")
    with pytest.raises(ContractError) as found:
        record_check.check(pipeline)
    assert "31 problems" in str(found.value) and "… and 21 more" in str(found.value)


def test_an_empty_file_is_named(pipeline: Pipeline, tmp_path: Path) -> None:
    file = spoil(tmp_path)
    with pytest.raises(ContractError, match=f"{file}: empty, it holds no record"):
        record_check.check(pipeline)


@pytest.mark.parametrize("how", ["truncated", "flipped", "text", "length"])
def test_a_damaged_file_is_named_with_the_record(
    pipeline: Pipeline, tmp_path: Path, how: str
) -> None:
    file = spoil(tmp_path, image(CAT), image(CAT))
    content = bytearray(file.read_bytes())
    second = len(content) // 2
    match how:
        case "truncated":
            del content[-10:]
        case "flipped":
            content[-30] ^= 0xFF
        case "length":
            content[second] ^= 0xFF
        case "text":
            content = bytearray(b"these are no records, but some text of a person")
    file.write_bytes(content)
    with pytest.raises(ContractError) as found:
        record_check.check(pipeline)
    index = 0 if how == "text" else 1
    assert f"{file}, record {index}: damaged" in str(found.value)


def test_a_pattern_without_a_match_lists_the_existing_files(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    reader = pipeline.train_input_reader.model_copy(update={"input_path": (f"{tmp_path}/x-*",)})
    wrong = pipeline.model_copy(update={"train_input_reader": reader})
    with pytest.raises(ContractError) as found:
        record_check.check(wrong)
    assert f"train_input_reader.input_path = {tmp_path}/x-*: no file matches" in str(found.value)
    assert "map.pbtxt, train-00000-of-00002.tfrecord" in str(found.value)
    reader = pipeline.eval_input_reader.model_copy(update={"input_path": ("/none/x-*",)})
    with pytest.raises(ContractError, match="/none is not a directory"):
        record_check.check(pipeline.model_copy(update={"eval_input_reader": reader}))


def test_classes_boxes_and_label_maps_must_be_consistent(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    few = pipeline.model.model_copy(update={"num_classes": 1})
    with pytest.raises(ContractError, match=r"goes up to id 2 \(dog\); write num_classes = 2"):
        record_check.check(pipeline.model_copy(update={"model": few}))
    padded = pipeline.train_config.model_copy(update={"max_number_of_boxes": 1})
    with pytest.raises(ContractError, match="one training image has 2 boxes"):
        record_check.check(pipeline.model_copy(update={"train_config": padded}))
    (tmp_path / "other.pbtxt").write_text(label_map.of_names(["dog", "cat"]).to_text())
    other = pipeline.eval_input_reader.model_copy(
        update={"label_map_path": str(tmp_path / "other.pbtxt")}
    )
    with pytest.raises(ContractError, match=r"map.pbtxt and .*other.pbtxt differ"):
        record_check.check(pipeline.model_copy(update={"eval_input_reader": other}))
    records.write([image()], tmp_path / "val", 1)
    with pytest.raises(ContractError, match="1 images, and no box among them"):
        record_check.check(pipeline)


def mutated(octets: bytes, draw: random.Random) -> bytes:
    """Returns the bytes with a few places overwritten, removed or doubled: nearly valid inputs find
    most bugs."""
    for _ in range(draw.randint(1, 4)):
        at, length = draw.randrange(len(octets) + 1), draw.randrange(9)
        piece = draw.choice([b"", b"\0", b"\xff" * 8, draw.randbytes(5), octets[:20]])
        octets = octets[:at] + piece + octets[at + length :]
    return octets


def test_any_record_is_an_image_or_a_described_problem():
    draw, valid = random.Random(11), records.to_example(image(CAT, DOG))
    found = [record_check.looked_at(mutated(valid, draw), LABELS) for _ in range(400)]
    assert any(wrong for _, wrong in found)
    assert all(isinstance(what, str) and what for _, wrong in found for what in wrong)


def test_any_file_is_read_or_its_invalid_record_is_named(pipeline, tmp_path):
    file, draw = tmp_path / "train-00001-of-00002.tfrecord", random.Random(12)
    valid = file.read_bytes()
    for _ in range(100):
        file.write_bytes(mutated(valid, draw))
        try:
            record_check.check(pipeline)
        except ContractError as problem:
            assert str(file) in str(problem) and "→" in str(problem)
