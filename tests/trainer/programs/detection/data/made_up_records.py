"""With TensorFlow: images with a cat or a dog, and their records, some of them invalid."""

from __future__ import annotations

import dataclasses
import io

import tensorflow as tf
from PIL import Image

from trainer.programs.detection.data import label_map, records
from trainer.programs.detection.data.annotation import PNG, Box, LabelledImage

LABELS = label_map.of_names(["cat", "dog"])
HEIGHT, WIDTH = 20, 40


def picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), (10, 200, 30)).save(file, "PNG")
    return file.getvalue()


def image(*boxes: Box, **changes: object) -> LabelledImage:
    made = LabelledImage(picture(), PNG, HEIGHT, WIDTH, "a.png", "7", boxes)
    return dataclasses.replace(made, **changes)


CAT = Box(0.25, 0.25, 0.5, 0.75, "cat", 1)
DOG = Box(0.0, 0.5, 1.0, 1.0, "dog", 2, difficult=True, crowd=True)


def changed(**features: list) -> bytes:
    """Returns the record of an image with a cat, with some features replaced; None removes one."""
    example = tf.train.Example.FromString(records.to_example(image(CAT)))
    for key, values in features.items():
        name = key.replace("__", "/")
        del example.features.feature[name]
        if values is not None:
            kind = {bytes: "bytes_list", int: "int64_list", float: "float_list"}[type(values[0])]
            getattr(example.features.feature[name], kind).value.extend(values)
    return example.SerializeToString()
