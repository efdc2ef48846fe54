"""From TFRecords to batches, in TensorFlow ops only, so that it runs where the model runs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from trainer.programs.detection.config.pipeline import Pipeline
from trainer.programs.detection.data import records
from trainer.programs.detection.data.augmentation import augmented
from trainer.programs.detection.data.decoding import decoded, single

CACHE_BYTES = 256 << 20
"""Records are kept in memory, as they are, when a replica's share needs no more than this."""
SHUFFLED = 4096
"""Records that wait to be drawn."""
FEW_FILES = 4
"""Files a replica needs for its share to be even enough; below, records are shared out."""


class Batch(NamedTuple):
    """n images of one size, padded to m boxes each."""

    images: tf.Tensor
    """float32 [n, size, size, 3], 0…255."""
    boxes: tf.Tensor
    """float32 [n, m, 4]: ymin, xmin, ymax, xmax in 0…1; zeros as padding."""
    classes: tf.Tensor
    """int32 [n, m]: ids of the label map, from 1; 0 as padding."""
    count: tf.Tensor
    """int32 [n]: boxes of each image."""


class ScoredBatch(NamedTuple):
    """As Batch, and what only scoring asks for."""

    images: tf.Tensor
    boxes: tf.Tensor
    classes: tf.Tensor
    count: tf.Tensor
    difficult: tf.Tensor
    """bool [n, m]: finding or missing it counts neither for nor against the detector."""
    crowd: tf.Tensor
    """bool [n, m]: one box for many objects, likewise."""
    names: tf.Tensor
    """string [n]: image/source_id, or the file name if there is none."""


def training(
    pipeline: Pipeline, replica: int | tf.Tensor, replicas: int, batch_size: int | None = None
) -> tf.data.Dataset:
    """Endless augmented batches of this replica's share of the records; elements are Batch.

    Every replica sees other records than the others. Crowds are left out: they are not examples of
    one object.

    Args:
        replica: 0 to replicas - 1, a tensor if one traced function serves all of them.
        batch_size: images, train_config's if it is None.
    """
    config = pipeline.train_config
    size, most = pipeline.model.image_size, config.max_number_of_boxes
    files = records.find(pipeline.train_input_reader.input_path, "train_input_reader.input_path")
    share = shared_out(files, replica, replicas)
    if sum(Path(file).stat().st_size for file in files) <= CACHE_BYTES * replicas:
        share = share.cache()
    seed = config.seed + tf.cast(replica, tf.int64)
    share = share.shuffle(SHUFFLED, seed, reshuffle_each_iteration=True).repeat()

    def prepared(record: tf.Tensor, drawn: tf.Tensor) -> Batch:
        example = single(decoded(record, 2 * size))
        image, boxes, classes = augmented(
            example.image, example.boxes, example.classes, config.augmentation, size, drawn
        )
        return padded(image, boxes, classes, most)

    seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=True)
    examples = tf.data.Dataset.zip((share, seeds)).map(
        prepared, num_parallel_calls=tf.data.AUTOTUNE
    )
    batches = examples.batch(batch_size or config.batch_size, drop_remainder=True)
    return batches.prefetch(tf.data.AUTOTUNE)


def scoring(pipeline: Pipeline, batch_size: int | None = None) -> tf.data.Dataset:
    """Every evaluation image once, as it is, in the order of the files; elements are ScoredBatch.

    The last batch may be smaller; m is the most boxes of any image in the batch.
    """
    size, config = pipeline.model.image_size, pipeline.eval_config
    files = records.find(pipeline.eval_input_reader.input_path, "eval_input_reader.input_path")
    share = tf.data.TFRecordDataset(list(files))
    if config.num_examples:
        share = share.take(config.num_examples)

    def prepared(record: tf.Tensor) -> ScoredBatch:
        example = decoded(record, 2 * size)
        return ScoredBatch(
            resized(example.image, size),
            example.boxes,
            example.classes,
            tf.shape(example.classes)[0],
            example.difficult,
            example.crowd,
            example.name,
        )

    shapes = ScoredBatch([size, size, 3], [None, 4], [None], [], [None], [None], [])
    examples = share.map(prepared, num_parallel_calls=tf.data.AUTOTUNE)
    return examples.padded_batch(batch_size or config.batch_size, shapes).prefetch(2)


def shared_out(files: tuple[str, ...], replica: int | tf.Tensor, replicas: int) -> tf.data.Dataset:
    """Records of one replica: of its own files if there are enough, else every n-th record."""
    replica = tf.cast(replica, tf.int64)
    if len(files) % replicas == 0 or len(files) >= FEW_FILES * replicas:
        mine = tf.data.Dataset.from_tensor_slices(list(files)).shard(replicas, replica)
        return tf.data.TFRecordDataset(mine)
    return tf.data.TFRecordDataset(list(files)).shard(replicas, replica)


def resized(image: tf.Tensor, size: int) -> tf.Tensor:
    """float32 [size, size, 3], 0…255."""
    return tf.ensure_shape(tf.image.resize(image, (size, size), antialias=True), (size, size, 3))


def padded(image: tf.Tensor, boxes: tf.Tensor, classes: tf.Tensor, most: int) -> Batch:
    """The boxes filled up with zeros to `most`; `check` has seen that no image has more."""
    boxes, classes = boxes[:most], classes[:most]
    count = tf.shape(classes)[0]
    missing = most - count
    return Batch(
        image,
        tf.ensure_shape(tf.pad(boxes, [[0, missing], [0, 0]]), (most, 4)),
        tf.ensure_shape(tf.pad(classes, [[0, missing]]), (most,)),
        count,
    )
