"""The input: files to augmented batches, in TensorFlow ops only, so that it runs on the workers."""

from __future__ import annotations

import math
import random

import tensorflow as tf

from trainer.agent.injected.for_programs.cluster_kit_input import data_service, distribute
from trainer.programs.classifier.image_files import Split
from trainer.programs.classifier.options import Options

JOB = "training"
"""The name under which all pipelines share the batches of data workers."""
CACHE_BYTES = 512 << 20
"""Decoded images are kept in memory when one worker's share needs no more than this."""


@tf.autograph.experimental.do_not_convert
def training_set(
    split: Split, classes: int, options: Options, pipelines: int, index: tf.Tensor | int
) -> tf.data.Dataset:
    """Endless augmented batches of pipeline `index`'s share of the files.

    Elements: images [batch, size, size, 3] float32 in 0…255, labels [batch, classes] one-hot.
    Files are divided before they are read, so that no image is decoded by two workers. If there are
    data workers, the files are divided between them, and all pipelines share their batches.
    """
    if data_service():
        hint = tf.data.experimental.SHARD_HINT  # each data worker puts its own part in its place
        batches = augmented_batches(split, classes, options, (hint, hint), options.seed)
        by_hint = tf.data.experimental.service.ShardingPolicy.HINT
        return distribute(batches, by_hint, JOB).prefetch(tf.data.AUTOTUNE)
    pipelines = min(pipelines, len(split.paths))
    index = tf.cast(index, tf.int64)
    part = (pipelines, index % pipelines)
    return augmented_batches(split, classes, options, part, options.seed + index)


def augmented_batches(
    split: Split,
    classes: int,
    options: Options,
    part: tuple[int, tf.Tensor | int],
    seed: tf.Tensor | int,
) -> tf.data.Dataset:
    """Endless augmented batches of a part of the files: (number of parts, index), as
    `Dataset.shard` takes them."""
    files = list(zip(split.paths, split.labels))
    random.Random(options.seed).shuffle(files)
    paths, labels = zip(*files)
    parts, index = part
    share = math.ceil(len(files) / max(parts, 1))
    images = tf.data.Dataset.from_tensor_slices((list(paths), list(labels)))
    images = images.shard(parts, index)
    cached = share * options.image_size**2 * 3 <= CACHE_BYTES
    if cached:
        images = decoded(images, options.image_size).cache()
    images = images.shuffle(min(share, 10_000), seed, reshuffle_each_iteration=True).repeat()
    if not cached:
        images = decoded(images, options.image_size)
    batches = images.batch(options.batch_size, drop_remainder=True)
    batches = tf.data.Dataset.zip(batches, tf.data.Dataset.random(seed)).map(
        lambda batch, drawn: (augment(batch[0], options, drawn), tf.one_hot(batch[1], classes)),
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    return batches.prefetch(tf.data.AUTOTUNE)


@tf.autograph.experimental.do_not_convert
def scoring_set(split: Split, classes: int, options: Options) -> tf.data.Dataset:
    """Return every image once, unchanged, in file order; the last batch may be smaller."""
    images = tf.data.Dataset.from_tensor_slices((list(split.paths), list(split.labels)))
    images = decoded(images, options.image_size)
    if len(split.paths) * options.image_size**2 * 3 <= CACHE_BYTES:
        images = images.cache()
    batches = images.batch(max(options.batch_size, 64))
    batches = batches.map(
        lambda image, label: (tf.cast(image, tf.float32), tf.one_hot(label, classes))
    )
    return batches.prefetch(tf.data.AUTOTUNE)


def decoded(files: tf.data.Dataset, size: int) -> tf.data.Dataset:
    """(path, label) to (image [size, size, 3] uint8, label)."""

    def decode(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        image = tf.io.decode_image(tf.io.read_file(path), channels=3, expand_animations=False)
        image = tf.image.resize(image, (size, size), antialias=True)
        image = tf.cast(tf.clip_by_value(tf.round(image), 0, 255), tf.uint8)
        return tf.ensure_shape(image, (size, size, 3)), label

    return files.map(decode, num_parallel_calls=tf.data.AUTOTUNE)


def augment(images: tf.Tensor, options: Options, seed: tf.Tensor | int) -> tf.Tensor:
    """Turn, shear, zoom, flip and shift a batch [batch, size, size, 3]; one resampling in all.

    The same `seed` gives the same result.
    """
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=tf.cast(images, tf.float32),
        transforms=random_transforms(tf.shape(images)[0], options, seed),
        output_shape=(options.image_size, options.image_size),
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="NEAREST",
    )


def random_transforms(count: tf.Tensor | int, options: Options, seed: tf.Tensor | int) -> tf.Tensor:
    """[count, 8] float32: rows a0 a1 a2 b0 b1 b2 0 0 that map an output pixel to its source.

    (x, y) → centre + A·((x, y) - centre) + shift, with A = rotation · shear · zoom and flip.
    """

    shift = options.shift * options.image_size
    limits = (math.radians(options.rotation), options.shear, options.zoom, options.zoom)
    limits = (*limits, shift, shift, 1.0)
    seeds = tf.stack([tf.cast(seed, tf.int64), 0])
    drawn = tf.random.stateless_uniform((len(limits), count), seeds, -1.0, 1.0)
    angle, shear, zoom_x, zoom_y, shift_x, shift_y, side = tf.unstack(
        drawn * tf.constant(limits)[:, tf.newaxis]
    )
    zoom_x, zoom_y = 1.0 + zoom_x, 1.0 + zoom_y
    if options.flip:
        zoom_x = tf.where(side < 0, -zoom_x, zoom_x)
    cos, sin = tf.cos(angle), tf.sin(angle)
    a0, a1 = cos * zoom_x, (cos * shear - sin) * zoom_y
    b0, b1 = sin * zoom_x, (sin * shear + cos) * zoom_y
    centre = (options.image_size - 1) / 2
    a2 = centre - (a0 + a1) * centre + shift_x
    b2 = centre - (b0 + b1) * centre + shift_y
    zero = tf.zeros_like(a0)
    return tf.stack([a0, a1, a2, b0, b1, b2, zero, zero], axis=1)
