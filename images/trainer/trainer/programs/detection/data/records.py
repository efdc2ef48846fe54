"""TFRecord files: written in shards, found by patterns, read record by record."""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

import tensorflow as tf

from trainer.agent.errors import ContractError
from trainer.programs.detection.data.annotation import LabelledImage
from trainer.programs.detection.data.examples import to_example


def shard_names(prefix: Path, shards: int) -> list[Path]:
    """`prefix-00000-of-00004.tfrecord` and so on, as TensorFlow's own tools name them."""
    return [
        prefix.with_name(f"{prefix.name}-{shard:05d}-of-{shards:05d}.tfrecord")
        for shard in range(shards)
    ]


class ShardWriter:
    """Writes records in turn to `shards` files; they are complete, or they are not there.

    A context manager: the files get their names when the block ends well.
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
    """Where a file is written until it is complete."""
    return name.with_name(f".{name.name}.part")


def write(images: Iterable[LabelledImage], prefix: Path, shards: int) -> list[Path]:
    """Write the images in turn to `shards` files; their names."""
    with ShardWriter(prefix, shards) as writer:
        for image in images:
            writer.write(to_example(image))
    return writer.names


def read(file: Path) -> Iterator[bytes]:
    """The records of one file, their checksums looked at.

    Raises:
        ContractError: the file is broken; names the record.
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
    """The part of TensorFlow's message that says what happened."""
    return problem.message.partition(";")[0].partition(" at ")[0].strip() or type(problem).__name__


def find(patterns: Sequence[str], place: str) -> tuple[str, ...]:
    """The files of all patterns, sorted. ContractError if a pattern matches none.

    Args:
        place: what the patterns come from, `train_input_reader.input_path`.
    """
    files: set[str] = set()
    for pattern in patterns:
        matched = [name for name in glob.glob(pattern) if Path(name).is_file()]  # noqa: PTH207
        if not matched:
            raise ContractError(f"{place} = {pattern}: no file matches; {whats_there(pattern)}")
        files.update(matched)
    return tuple(sorted(files))


def whats_there(pattern: str) -> str:
    """A cure: what the directory of a pattern has instead."""
    folder = Path(pattern).parent
    if not folder.is_dir():
        return (
            f"{folder} is not a directory: mount or convert the records to where the pattern looks"
        )
    names = sorted(path.name for path in folder.iterdir() if path.name[0] != ".")
    more = " …" if len(names) > 8 else ""
    return f"in {folder} there are: {', '.join(names[:8]) or 'no files'}{more}"
