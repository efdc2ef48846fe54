"""With TensorFlow: batches, and the shares of replicas."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from PIL import Image  # noqa: E402

from trainer.programs.detection.config import pipeline_file  # noqa: E402
from trainer.programs.detection.config.pipeline import Pipeline  # noqa: E402
from trainer.programs.detection.data import input_pipeline, record_check, records  # noqa: E402
from trainer.programs.detection.data.annotation import JPEG, PNG, Box, LabelledImage  # noqa: E402

SIZE = 32
SAMPLE = Path("/opt/datasets/digit-scenes")


def encoded(pixels: np.ndarray, form: str = PNG) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form)
    return file.getvalue()


def with_number(index: int) -> LabelledImage:
    """Returns a grey image of brightness 10 · index, with index modulo 3 boxes."""
    pixels = np.full((24, 48), 10 * index, np.uint8)
    boxes = tuple(
        Box(0.0, 0.1 * k, 0.5, 0.1 * k + 0.25, "cat", k + 1, difficult=k == 1)
        for k in range(index % 3)
    )
    return LabelledImage(encoded(pixels), PNG, 24, 48, f"{index}.png", str(index), boxes)


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Twelve training images in three files, twelve for evaluation in one."""
    made = [with_number(index) for index in range(12)]
    records.write(made, tmp_path / "train", 3)
    records.write(made, tmp_path / "val", 1)
    return changed(tmp_path, {})


def changed(tmp_path: Path, train: dict) -> Pipeline:
    reader = {"label_map_path": str(tmp_path / "map.pbtxt")}
    return Pipeline.model_validate(
        {
            "model": {"num_classes": 2, "image_size": SIZE},
            "train_config": {
                "batch_size": 4,
                "num_steps": 1,
                "max_number_of_boxes": 3,
                "learning_rate": {"type": "constant", "learning_rate": 0.1},
                **train,
            },
            "train_input_reader": {**reader, "input_path": (str(tmp_path / "train-*"),)},
            "eval_input_reader": {**reader, "input_path": (str(tmp_path / "val-*"),)},
            "eval_config": {"batch_size": 5},
        }
    )


def numbers(batch: object) -> list[int]:
    """Returns the numbers of the images in a batch, by their brightness."""
    return [round(float(b) / 10) for b in tf.reduce_mean(batch.images, (1, 2, 3))]


def test_a_batch_is_padded_and_has_the_number_of_real_boxes(pipeline: Pipeline) -> None:
    (batch,) = input_pipeline.training(pipeline, 0, 1).take(1)
    assert batch.images.shape == (4, SIZE, SIZE, 3) and batch.images.dtype == tf.float32
    assert batch.boxes.shape == (4, 3, 4) and batch.boxes.dtype == tf.float32
    assert batch.classes.shape == (4, 3) and batch.classes.dtype == tf.int32
    assert batch.count.dtype == tf.int32
    for row, index in enumerate(numbers(batch)):
        count = index % 3
        assert batch.count[row] == count
        assert batch.classes[row].numpy().tolist() == [*range(1, count + 1), *[0] * (3 - count)]
        expected = np.zeros((3, 4))
        for k in range(count):
            expected[k] = (0.0, 0.1 * k, 0.5, 0.1 * k + 0.25)
        np.testing.assert_allclose(batch.boxes[row], expected, atol=1e-6)


@pytest.mark.parametrize("replicas", [2, 5])
def test_replicas_share_the_images_without_overlap(pipeline: Pipeline, replicas: int) -> None:
    shares = []
    for replica in range(replicas):
        batches = input_pipeline.training(pipeline, replica, replicas, batch_size=1).take(24)
        shares.append({number for batch in batches for number in numbers(batch)})
    assert sorted(number for share in shares for number in share) == list(range(12))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_the_replica_may_be_a_tensor_that_is_known_only_on_its_worker(pipeline: Pipeline) -> None:
    @tf.function
    def first(replica: tf.Tensor) -> tf.Tensor:
        batches = input_pipeline.training(pipeline, replica, 3, batch_size=4)
        return next(iter(batches)).images

    seen = [set(np.round(first(tf.constant(r)).numpy().mean((1, 2, 3)) / 10)) for r in range(3)]
    assert set.union(*seen) == set(range(12))


def test_a_graph_of_compat_v1_gives_the_same_batches(pipeline: Pipeline) -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        iterator = tf.compat.v1.data.make_initializable_iterator(
            input_pipeline.training(pipeline, 0, 1)
        )
        session.run(iterator.initializer)
        batch = session.run(iterator.get_next())
        scoring = tf.compat.v1.data.make_initializable_iterator(input_pipeline.scoring(pipeline))
        session.run(scoring.initializer)
        scored = session.run(scoring.get_next())
    (eager,) = input_pipeline.training(pipeline, 0, 1).take(1)
    assert batch.images.shape == eager.images.shape
    assert scored.names.tolist() == [b"0", b"1", b"2", b"3", b"4"]


def test_the_order_differs_between_epochs_but_not_between_runs(pipeline: Pipeline) -> None:
    def order() -> list[int]:
        batches = input_pipeline.training(pipeline, 0, 1).take(9)
        return [number for batch in batches for number in numbers(batch)]

    once = order()
    assert sorted(once[:12]) == sorted(once[12:24]) == list(range(12))
    assert once[:12] != once[12:24]
    assert once == order()


def test_scoring_shows_every_image_once_in_order(pipeline: Pipeline) -> None:
    batches = list(input_pipeline.scoring(pipeline))
    assert [len(batch.names) for batch in batches] == [5, 5, 2]
    assert [n.decode() for b in batches for n in b.names.numpy()] == [str(i) for i in range(12)]
    first = batches[0]
    assert first.boxes.shape == (5, 2, 4)
    assert first.count.numpy().tolist() == [0, 1, 2, 0, 1]
    assert first.difficult[2].numpy().tolist() == [False, True]
    limited = pipeline.model_copy(
        update={"eval_config": pipeline.eval_config.model_copy(update={"num_examples": 3})}
    )
    assert [len(batch.names) for batch in input_pipeline.scoring(limited)] == [3]


def test_crowds_are_not_trained_on(tmp_path: Path, pipeline: Pipeline) -> None:
    one = with_number(2)
    crowd = LabelledImage(
        one.encoded, PNG, 24, 48, "x", "x",
        (Box(0.0, 0.0, 1.0, 1.0, "cat", 1, crowd=True), *one.boxes),
    )  # fmt: skip
    records.write([crowd] * 3, tmp_path / "train", 3)
    records.write([crowd], tmp_path / "val", 1)
    (batch,) = input_pipeline.training(pipeline, 0, 1).take(1)
    assert batch.count.numpy().tolist() == [2, 2, 2, 2]
    (scored,) = input_pipeline.scoring(pipeline)
    assert scored.crowd.numpy().tolist() == [[True, False, False]]


def test_records_of_other_tools_and_grey_jpegs_are_read(tmp_path: Path, pipeline: Pipeline) -> None:
    """They lack difficult, is_crowd and source_id; one channel; larger than twice the model's
    size."""
    pixels = np.full((100, 300), 90, np.uint8)
    example = tf.train.Example.FromString(
        records.to_example(
            LabelledImage(
                encoded(pixels, JPEG), JPEG, 100, 300, "n.jpg", "", (Box(0, 0, 1, 1, "", 1),)
            )
        )
    )
    for key in (records.DIFFICULT, records.CROWD, records.SOURCE_ID, records.TEXT):
        del example.features.feature[key]
    with tf.io.TFRecordWriter(str(tmp_path / "val-00000-of-00001.tfrecord")) as writer:
        writer.write(example.SerializeToString())
    (scored,) = input_pipeline.scoring(pipeline)
    assert scored.names.numpy().tolist() == [b"n.jpg"]
    assert scored.images.shape == (1, SIZE, SIZE, 3)
    assert abs(float(tf.reduce_mean(scored.images)) - 90) < 2


def test_autograph_does_not_rewrite_the_preparation_of_a_record(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, plain = [], input_pipeline.decoded

    def seen(*arguments: object) -> object:
        status.append(tf.__internal__.autograph.control_status_ctx().status.name)
        return plain(*arguments)

    monkeypatch.setattr(input_pipeline, "decoded", seen)
    input_pipeline.training(pipeline, 0, 1)
    input_pipeline.scoring(pipeline)
    assert set(status) == {"DISABLED"}


@pytest.mark.skipif("TRAINER_PATH" not in os.environ, reason="the sample set is in the image")
def test_the_sample_set_in_the_image_is_valid_and_has_the_documented_size() -> None:
    pipeline = pipeline_file.read(SAMPLE / "pipeline.toml", {})
    checked = record_check.check(pipeline)
    assert (checked.train.images, checked.evaluation.images) == (2000, 250)
    assert set(checked.train.per_class) == set(checked.evaluation.per_class) == set(range(1, 11))
    assert min(checked.train.per_class.values()) > 400
    assert sum(file.stat().st_size for file in SAMPLE.iterdir()) < 25e6
    (batch,) = input_pipeline.training(pipeline, 0, 1).take(1)
    side = pipeline.model.image_size
    assert batch.images.shape == (pipeline.train_config.batch_size, side, side, 3)
