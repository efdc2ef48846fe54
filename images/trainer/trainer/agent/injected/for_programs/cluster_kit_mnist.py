"""Replaces `tensorflow.examples.tutorials.mnist.input_data`; reads existing files of MNIST.

TensorFlow's module downloaded the four files. A cluster's containers do not: they read the
directory that the program names, or else the cluster's data set.
"""

from __future__ import annotations

import collections
import gzip
import os
import struct
from pathlib import Path

import numpy

TRAIN_IMAGES, TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
TEST_IMAGES, TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
NUM_CLASSES = 10
FAKE = 10_000
"""The number of images of `fake_data`."""
Datasets = collections.namedtuple("Datasets", ["train", "validation", "test"])


class DataSet:
    """Images (float32 in [0, 1]) and labels, in batches; each epoch has a random order."""

    def __init__(
        self,
        images: numpy.ndarray,
        labels: numpy.ndarray,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: object = numpy.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        if reshape:
            images = images.reshape(len(images), int(numpy.prod(images.shape[1:])))  # 0 images, too
        if numpy.dtype(getattr(dtype, "as_numpy_dtype", dtype)) == numpy.float32:
            images = images.astype(numpy.float32) / 255.0
        self.images, self.labels = images, labels
        self.num_examples, self.epochs_completed = len(images), 0
        self._random, self._at = numpy.random.RandomState(seed), 0
        self._order = numpy.arange(len(images))

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[numpy.ndarray, numpy.ndarray]:
        """The next images and labels, none if there are none; the rest of an epoch comes before the
        next epoch's first ones."""
        if self._at == 0 and self.epochs_completed == 0 and shuffle:
            self._random.shuffle(self._order)
        taken: list[numpy.ndarray] = []
        missing = batch_size if len(self._order) else 0
        while missing:
            part = self._order[self._at : self._at + missing]
            taken.append(part.copy())
            self._at, missing = self._at + len(part), missing - len(part)
            if missing:
                self.epochs_completed, self._at = self.epochs_completed + 1, 0
                if shuffle:
                    self._random.shuffle(self._order)
        chosen = numpy.concatenate(taken) if taken else self._order[:0]
        return self.images[chosen], self.labels[chosen]


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: object = numpy.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = "",
) -> Datasets:
    """Training, validation and test data; FileNotFoundError names the searched folders.

    With `fake_data` every image is white, and every label is 0; no file is read.
    """
    names = (TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS)
    if fake_data:
        white, zeros = numpy.full((FAKE, 28, 28, 1), 255, "uint8"), numpy.zeros(FAKE, "uint8")
        arrays, validation_size = [white, zeros] * 2, 0
    else:
        arrays = [_read(name, train_dir) for name in names]
    images, labels, test_images, test_labels = arrays
    if one_hot:
        labels, test_labels = dense_to_one_hot(labels), dense_to_one_hot(test_labels)
    if not 0 <= validation_size <= len(images):
        raise ValueError(f"validation_size = {validation_size}: there are {len(images)} images")
    parts = (
        (images[validation_size:], labels[validation_size:]),
        (images[:validation_size], labels[:validation_size]),
        (test_images, test_labels),
    )
    return Datasets(*(DataSet(*part, dtype=dtype, reshape=reshape, seed=seed) for part in parts))


def dense_to_one_hot(labels: numpy.ndarray, num_classes: int = NUM_CLASSES) -> numpy.ndarray:
    """A row for each label, with 1 in the label's column."""
    return numpy.eye(num_classes)[labels]


def _read(name: str, folder: str) -> numpy.ndarray:
    """The content of the file, with or without .gz: images with a last dimension of 1, or
    labels."""
    folders = [folder, *filter(None, [os.environ.get("CLUSTER_KIT_DATA")])]
    files = [Path(where, name + ending) for where in folders for ending in (".gz", "")]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise FileNotFoundError(
            f"{name}.gz: not in {' nor in '.join(map(str, folders))}. Nothing is downloaded in a"
            " cluster: put the four files of MNIST into a directory and name that as the"
            " manifest's `data`"
        )
    raw = file.read_bytes()
    raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    dimensions = raw[3] if len(raw) > 3 and raw[:3] == b"\0\0\x08" else 0
    sizes = struct.unpack(
        f">{dimensions}I", raw[4 : 4 + 4 * dimensions].ljust(4 * dimensions, b"\0")
    )
    values = numpy.frombuffer(raw, numpy.uint8, offset=min(len(raw), 4 + 4 * dimensions))
    if not dimensions or values.size != numpy.prod(sizes):
        raise ValueError(f"{file}: not a whole file of MNIST's format (idx, unsigned bytes)")
    return values.reshape(*sizes, 1) if dimensions == 3 else values
