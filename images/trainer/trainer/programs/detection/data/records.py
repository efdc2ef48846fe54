"""TFRecord files: written in shards, found by patterns, read record by record.

Each record is one image as a tf.train.Example with the Object Detection API's feature keys.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import tensorflow as tf

from trainer.agent.errors import ContractError
from trainer.programs.detection.data.annotation import Box, LabelledImage

ENCODED, FORMAT = "image/encoded", "image/format"
HEIGHT, WIDTH = "image/height", "image/width"
FILENAME, SOURCE_ID, KEY = "image/filename", "image/source_id", "image/key/sha256"
YMIN, XMIN = "image/object/bbox/ymin", "image/object/bbox/xmin"
YMAX, XMAX = "image/object/bbox/ymax", "image/object/bbox/xmax"
TEXT, LABEL = "image/object/class/text", "image/object/class/label"
DIFFICULT, CROWD = "image/object/difficult", "image/object/is_crowd"
SIDES = (YMIN, XMIN, YMAX, XMAX)
KINDS = {
    "bytes_list": (ENCODED, FORMAT, FILENAME, SOURCE_ID, KEY, TEXT),
    "int64_list": (HEIGHT, WIDTH, LABEL, DIFFICULT, CROWD),
    "float_list": SIDES,
}
REQUIRED = (ENCODED, HEIGHT, WIDTH)


class RecordError(ValueError):
    """A record is invalid."""


def to_example(image: LabelledImage) -> bytes:
    """Returns the image as a serialised tf.train.Example."""
    boxes = image.boxes
    return serialised(
        {
            ENCODED: [image.encoded],
            FORMAT: [image.format.encode()],
            KEY: [hashlib.sha256(image.encoded).hexdigest().encode()],
            HEIGHT: [image.height],
            WIDTH: [image.width],
            FILENAME: [image.filename.encode()],
            SOURCE_ID: [image.source_id.encode()],
            YMIN: [box.ymin for box in boxes],
            XMIN: [box.xmin for box in boxes],
            YMAX: [box.ymax for box in boxes],
            XMAX: [box.xmax for box in boxes],
            TEXT: [box.label.encode() for box in boxes],
            LABEL: [box.number for box in boxes],
            DIFFICULT: [int(box.difficult) for box in boxes],
            CROWD: [int(box.crowd) for box in boxes],
        }
    )


def serialised(features: dict[str, list[Any]]) -> bytes:
    """Returns a tf.train.Example as bytes; the same features always give the same bytes."""
    example = tf.train.Example()
    kinds = {key: kind for kind, keys in KINDS.items() for key in keys}
    for key in sorted(features):
        getattr(example.features.feature[key], kinds[key]).value.extend(features[key])
    return example.SerializeToString(deterministic=True)


def from_example(record: bytes) -> LabelledImage:
    """Returns the image in a serialised tf.train.Example; raises RecordError for invalid
    features."""
    example = tf.train.Example()
    try:
        example.ParseFromString(record)
    except Exception as problem:  # The module of protobuf's error class differs between versions.
        raise RecordError("not a tf.train.Example") from problem
    features = {
        key: list(getattr(example.features.feature[key], kind).value)
        for kind, keys in KINDS.items()
        for key in keys
        if right_kind(example, key, kind)
    }
    missing = [key for key in REQUIRED if len(features.get(key, ())) != 1]
    if missing:
        raise RecordError(f"needs one value of {', '.join(missing)}")
    return LabelledImage(
        encoded=features[ENCODED][0],
        format=text_of(features, FORMAT),
        height=features[HEIGHT][0],
        width=features[WIDTH][0],
        filename=text_of(features, FILENAME),
        source_id=text_of(features, SOURCE_ID),
        boxes=boxes_of(features),
    )


def right_kind(example: tf.train.Example, key: str, kind: str) -> bool:
    """Return whether the feature exists; RecordError if its values are of another kind."""
    if key not in example.features.feature:
        return False
    has = example.features.feature[key].WhichOneof("kind")
    if has not in (kind, None):
        raise RecordError(f"{key} is a {has}, must be a {kind}")
    return has is not None


def text_of(found: dict[str, list[Any]], key: str) -> str:
    """Returns the feature's first value as text; '' if there is none."""
    return b"".join(found.get(key, ())[:1]).decode("utf-8", "replace")


def boxes_of(found: dict[str, list[Any]]) -> tuple[Box, ...]:
    """Returns a box for each entry of the lists, which must have the same length; optional lists
    may be absent."""
    count = len(found.get(YMIN, ()))
    for key in (*SIDES, LABEL, TEXT, DIFFICULT, CROWD):
        optional = key in (TEXT, DIFFICULT, CROWD)
        length = len(found.get(key, ()))
        if length != count and not (optional and length == 0):
            raise RecordError(f"{key} has {length} entries, {YMIN} has {count}")
    texts = [text.decode("utf-8", "replace") for text in found.get(TEXT, ())] or [""] * count
    none = [0] * count
    columns = (*(found.get(key, ()) for key in SIDES), texts, found.get(LABEL, ()))
    return tuple(
        Box(*row, difficult=bool(difficult), crowd=bool(crowd))
        for row, difficult, crowd in zip(
            zip(*columns, strict=True),
            found.get(DIFFICULT) or none,
            found.get(CROWD) or none,
            strict=True,
        )
    )


def shard_names(prefix: Path, shards: int) -> list[Path]:
    """Returns `prefix-00000-of-00004.tfrecord` and so on, as TensorFlow's own tools name files."""
    return [
        prefix.with_name(f"{prefix.name}-{shard:05d}-of-{shards:05d}.tfrecord")
        for shard in range(shards)
    ]


class ShardWriter:
    """Writes records to `shards` files in turn. A file appears under its name only when it is
    complete.

    Use it as a context manager: the files get their names when the block ends without an error.
    """

    def __init__(self, prefix: Path, shards: int) -> None:
        self.names = shard_names(prefix, shards)
        self.written = 0
        self.files = contextlib.ExitStack()

    def __enter__(self) -> ShardWriter:
        self.names[0].parent.mkdir(parents=True, exist_ok=True)
        self.writers = [
            self.files.enter_context(tf.io.TFRecordWriter(str(part_of(name))))
            for name in self.names
        ]
        return self

    def write(self, record: bytes) -> None:
        self.writers[self.written % len(self.writers)].write(record)
        self.written += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.files.close()
        for name in self.names:
            if kind is None:
                part_of(name).replace(name)
            else:
                part_of(name).unlink(missing_ok=True)


def part_of(name: Path) -> Path:
    """The temporary path of a file until it is complete."""
    return name.with_name(f".{name.name}.part")


def write(images: Iterable[LabelledImage], prefix: Path, shards: int) -> list[Path]:
    """Write the images to `shards` files in turn; returns the files' names."""
    with ShardWriter(prefix, shards) as writer:
        for image in images:
            writer.write(to_example(image))
    return writer.names


def read(file: Path) -> Iterator[bytes]:
    """Yield the records of a file, with their checksums verified.

    Raises:
        ContractError: the file is damaged; the message names the record.
    """
    index = 0
    records = tf.compat.v1.io.tf_record_iterator(str(file))
    while True:
        try:
            record = next(records)
        except StopIteration:
            return
        except tf.errors.DataLossError as problem:
            raise ContractError(
                f"{file}, record {index}: damaged ({first_words(problem)}); write or copy the file"
                " again"
            ) from problem
        except tf.errors.OpError as problem:
            raise ContractError(
                f"{file}: cannot be read ({first_words(problem)}); see that it is there, and that"
                f" the user of the container may read it"
            ) from problem
        yield record
        index += 1


def first_words(problem: tf.errors.OpError) -> str:
    """Returns the essential part of TensorFlow's message."""
    return problem.message.partition(";")[0].partition(" at ")[0].strip() or type(problem).__name__


def find(patterns: Sequence[str], key_path: str) -> tuple[str, ...]:
    """Returns the files that match the patterns, sorted; ContractError if a pattern matches no
    file.

    Args:
        key_path: the key that has the patterns, such as `train_input_reader.input_path`.
    """
    files: set[str] = set()
    for pattern in patterns:
        matched = [name for name in glob.glob(pattern) if Path(name).is_file()]  # noqa: PTH207
        if not matched:
            raise ContractError(f"{key_path} = {pattern}: no file matches; {whats_there(pattern)}")
        files.update(matched)
    return tuple(sorted(files))


def whats_there(pattern: str) -> str:
    """Return a hint that lists other files in the directory of a pattern."""
    folder = Path(pattern).parent
    if not folder.is_dir():
        return (
            f"{folder} is not a directory: mount or convert the records to where the pattern looks"
        )
    names = sorted(path.name for path in folder.iterdir() if path.name[0] != ".")
    more = " …" if len(names) > 8 else ""
    return f"in {folder} there are: {', '.join(names[:8]) or 'no files'}{more}"
