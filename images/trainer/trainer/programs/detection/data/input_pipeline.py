"""Makes batches of augmented images with boxes from TFRecords.

It uses only TensorFlow ops, so that it runs where the model runs. The same `seed` gives the same
augmentation.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from trainer.programs.detection.config.pipeline import Augmentation, Crop, Pipeline
from trainer.programs.detection.data import records

GREY = 127.5
DRAWS = 10


def augmented(
    image: tf.Tensor,
    boxes: tf.Tensor,
    classes: tf.Tensor,
    options: Augmentation,
    size: int,
    seed: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Augment an image uint8 [h, w, 3]: returns (image float32 [size, size, 3] in 0…255, boxes,
    classes).

    The returned boxes [k, 4] and classes [k] exclude objects outside the window.
    """
    drawn = tf.unstack(tf.random.stateless_uniform([DRAWS], tf.stack([seed, 0])))
    if options.random_crop:
        window = random_window(options.random_crop, drawn[:5])
        boxes, classes = seen_through(window, boxes, classes, options.random_crop.min_visible)
        image = tf.image.crop_and_resize(
            tf.cast(image, tf.float32)[tf.newaxis], [window], [0], (size, size),
            extrapolation_value=GREY,
        )[0]  # fmt: skip
    else:
        image = tf.image.resize(image, (size, size), antialias=True)
    image = tf.ensure_shape(image, (size, size, 3))
    if options.random_horizontal_flip:
        flip = drawn[5] < options.random_horizontal_flip
        image = tf.where(flip, image[:, ::-1], image)
        ymin, xmin, ymax, xmax = tf.unstack(boxes, axis=1)
        boxes = tf.where(flip, tf.stack([ymin, 1 - xmax, ymax, 1 - xmin], 1), boxes)
    return coloured(image, options, drawn[6:]), boxes, classes


def random_window(crop: Crop, drawn: list[tf.Tensor]) -> tf.Tensor:
    """Returns [ymin, xmin, ymax, xmax] in fractions of the image; parts outside the image are
    grey."""
    chance, scale, aspect, down, right = drawn
    scale = crop.min_scale + (crop.max_scale - crop.min_scale) * scale
    stretch = tf.exp((aspect - 0.5) * math.log(crop.max_aspect_change))
    height, width = scale / stretch, scale * stretch
    top, left = down * (1 - height), right * (1 - width)
    window = tf.stack([top, left, top + height, left + width])
    return tf.where(chance < crop.probability, window, [0.0, 0.0, 1.0, 1.0])


def seen_through(
    window: tf.Tensor, boxes: tf.Tensor, classes: tf.Tensor, min_visible: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return boxes in fractions of the window, clipped to it; hardly visible boxes are omitted."""
    corner = tf.concat([window[:2], window[:2]], 0)
    sides = tf.concat([window[2:] - window[:2]] * 2, 0)
    moved = (boxes - corner) / sides
    cut = tf.clip_by_value(moved, 0.0, 1.0)
    visible = tf.math.divide_no_nan(area(cut), area(moved))
    kept = (visible >= min_visible) & (area(cut) > 0)
    return tf.boolean_mask(cut, kept), tf.boolean_mask(classes, kept)


def area(boxes: tf.Tensor) -> tf.Tensor:
    """Returns the areas [n] of boxes [n, 4]."""
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def coloured(image: tf.Tensor, options: Augmentation, drawn: list[tf.Tensor]) -> tf.Tensor:
    """Change brightness, contrast, saturation and hue, each if it is configured."""
    light, contrast, saturation, hue = (2 * number - 1 for number in drawn)
    if options.hue or options.saturation:
        image = tf.clip_by_value(image, 0.0, 255.0) / 255.0
        if options.saturation:
            image = tf.image.adjust_saturation(image, 1 + options.saturation * saturation)
        if options.hue:
            image = tf.image.adjust_hue(image, options.hue * hue)
        image = image * 255.0
    if options.contrast:
        image = tf.image.adjust_contrast(image, 1 + options.contrast * contrast)
    if options.brightness:
        image = image + 255.0 * options.brightness * light
    return tf.clip_by_value(image, 0.0, 255.0)


class Example(NamedTuple):
    """One record, decoded: image uint8 [h, w, 3], and k boxes."""

    image: tf.Tensor
    boxes: tf.Tensor
    classes: tf.Tensor
    difficult: tf.Tensor
    crowd: tf.Tensor
    name: tf.Tensor


def decoded(record: tf.Tensor, most: int) -> Example:
    """Returns the image and the boxes of a serialised tf.train.Example.

    An image with a side above `most` pixels is shrunk to it, since later steps sample single
    pixels.
    """
    variable = {
        **{key: tf.io.VarLenFeature(tf.float32) for key in records.SIDES},
        **{
            key: tf.io.VarLenFeature(tf.int64)
            for key in (records.LABEL, records.DIFFICULT, records.CROWD)
        },
    }
    single_ones = {
        records.ENCODED: tf.io.FixedLenFeature([], tf.string),
        records.SOURCE_ID: tf.io.FixedLenFeature([], tf.string, ""),
        records.FILENAME: tf.io.FixedLenFeature([], tf.string, ""),
    }
    parsed = tf.io.parse_single_example(record, {**variable, **single_ones})
    column = {key: parsed[key].values for key in variable}
    image = tf.io.decode_image(parsed[records.ENCODED], channels=3, expand_animations=False)
    image = tf.ensure_shape(image, (None, None, 3))
    sides = tf.minimum(tf.shape(image)[:2], most)
    image = tf.cond(
        tf.reduce_all(tf.equal(sides, tf.shape(image)[:2])),
        lambda: image,
        lambda: to_octets(tf.image.resize(image, sides, antialias=True)),
    )
    boxes = tf.clip_by_value(tf.stack([column[key] for key in records.SIDES], 1), 0.0, 1.0)
    source = parsed[records.SOURCE_ID]
    return Example(
        image,
        boxes,
        tf.cast(column[records.LABEL], tf.int32),
        flags(column[records.DIFFICULT], tf.shape(boxes)[0]),
        flags(column[records.CROWD], tf.shape(boxes)[0]),
        tf.where(tf.strings.length(source) > 0, source, parsed[records.FILENAME]),
    )


def to_octets(image: tf.Tensor) -> tf.Tensor:
    """Returns float pixels in 0…255 as uint8, rounded."""
    return tf.cast(tf.clip_by_value(tf.round(image), 0, 255), tf.uint8)


def flags(values: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """Returns bool [count]; all False if the record does not have the feature."""
    # Under a graph of compat.v1 `==` would compare the tensors as objects.
    there = tf.equal(tf.shape(values)[0], count)
    return tf.cond(there, lambda: values > 0, lambda: tf.zeros([count], tf.bool))


def single(example: Example) -> Example:
    """Returns the example without crowds."""
    kept = ~example.crowd
    columns = (example.boxes, example.classes, example.difficult, example.crowd)
    return Example(
        example.image, *(tf.boolean_mask(column, kept) for column in columns), example.name
    )


CACHE_BYTES = 256 << 20
"""Records are cached in memory, still encoded, if a replica's share needs no more than this."""
SHUFFLED = 4096
"""The size of the shuffle buffer, in records."""
FEW_FILES = 4
"""The minimum number of files per replica for dividing by files; with fewer, records are
divided."""


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
    """A Batch with the fields that only scoring needs."""

    images: tf.Tensor
    boxes: tf.Tensor
    classes: tf.Tensor
    count: tf.Tensor
    difficult: tf.Tensor
    """bool [n, m]: the object is difficult; detecting it or not does not affect the score."""
    crowd: tf.Tensor
    """bool [n, m]: the box marks many objects; detecting them or not does not affect the score."""
    names: tf.Tensor
    """string [n]: image/source_id, or the file name if there is none."""


@tf.autograph.experimental.do_not_convert
def training(
    pipeline: Pipeline, replica: int | tf.Tensor, replicas: int, batch_size: int | None = None
) -> tf.data.Dataset:
    """Returns endless augmented batches of this replica's share of the records; elements are Batch.

    Every replica gets different records. Crowds are omitted, since a crowd is not an example of a
    single object.

    Args:
        replica: 0 to replicas - 1; a tensor if one traced function serves all replicas.
        batch_size: number of images; if None, train_config's.
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


@tf.autograph.experimental.do_not_convert
def scoring(pipeline: Pipeline, batch_size: int | None = None) -> tf.data.Dataset:
    """Returns every evaluation image once, unchanged, in the order of the files; elements are
    ScoredBatch.

    The last batch may be smaller; m is the largest number of boxes of an image in the batch.
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
    """Return a replica's records: of a part of the files if they suffice, else each n-th record."""
    replica = tf.cast(replica, tf.int64)
    if len(files) % replicas == 0 or len(files) >= FEW_FILES * replicas:
        mine = tf.data.Dataset.from_tensor_slices(list(files)).shard(replicas, replica)
        return tf.data.TFRecordDataset(mine)
    return tf.data.TFRecordDataset(list(files)).shard(replicas, replica)


def resized(image: tf.Tensor, size: int) -> tf.Tensor:
    """Returns float32 [size, size, 3] in 0…255."""
    return tf.ensure_shape(tf.image.resize(image, (size, size), antialias=True), (size, size, 3))


def padded(image: tf.Tensor, boxes: tf.Tensor, classes: tf.Tensor, most: int) -> Batch:
    """Returns the boxes padded with zeros to `most`; `check` has ensured that no image has more."""
    boxes, classes = boxes[:most], classes[:most]
    count = tf.shape(classes)[0]
    missing = most - count
    return Batch(
        image,
        tf.ensure_shape(tf.pad(boxes, [[0, missing], [0, 0]]), (most, 4)),
        tf.ensure_shape(tf.pad(classes, [[0, missing]]), (most,)),
        count,
    )
