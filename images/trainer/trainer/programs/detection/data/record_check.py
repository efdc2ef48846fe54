"""Checks all records and the label map before training, for every fault that would stop it later.

Checksums and the headers of images are checked; no pixel is decoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainer.agent.errors import ContractError
from trainer.programs.detection.config.pipeline import InputReader, Pipeline
from trainer.programs.detection.data import label_map, records
from trainer.programs.detection.data.annotation import Box, LabelledImage
from trainer.programs.detection.data.label_map import LabelMap

MOST_SHOWN = 10


@dataclass(frozen=True)
class RecordSet:
    """The valid records of one input reader."""

    files: tuple[str, ...]
    images: int
    boxes: int
    most_boxes: int
    """The largest number of boxes in one image."""
    per_class: Mapping[int, int]
    """Boxes of each class, by id."""


@dataclass(frozen=True)
class Checked:
    """The checked data for the training and the evaluation of a pipeline."""

    labels: LabelMap
    train: RecordSet
    evaluation: RecordSet | None
    """None if the configuration has no eval_input_reader."""


def check(pipeline: Pipeline) -> Checked:
    """Read all data once; raises ContractError with file and record of each fault."""
    labels = label_map.read(Path(pipeline.train_input_reader.label_map_path))
    same_labels(labels, pipeline)
    if labels.largest > pipeline.model.num_classes:
        raise ContractError(
            f"model.num_classes = {pipeline.model.num_classes}, but"
            f" {pipeline.train_input_reader.label_map_path} goes up to id {labels.largest}"
            f" ({labels.labels[labels.largest]}); write num_classes = {labels.largest}"
        )
    train = record_set(pipeline.train_input_reader, "train_input_reader", labels)
    scored = pipeline.eval_input_reader
    evaluation = record_set(scored, "eval_input_reader", labels) if scored else None
    for checked_set, reader in ((train, "train_input_reader"), (evaluation, "eval_input_reader")):
        if checked_set and not checked_set.boxes:
            raise ContractError(
                f"{reader}.input_path: {checked_set.images} images, and no box among them; convert"
                " the annotations together with the images"
            )
    padded = pipeline.train_config.max_number_of_boxes
    if train.most_boxes > padded:
        raise ContractError(
            f"train_config.max_number_of_boxes = {padded}, but one training image has"
            f" {train.most_boxes} boxes, and the rest would be lost; write max_number_of_boxes ="
            f" {train.most_boxes}"
        )
    return Checked(labels, train, evaluation)


def same_labels(labels: LabelMap, pipeline: Pipeline) -> None:
    """Raise ContractError if training and evaluation have different label maps."""
    scored = pipeline.eval_input_reader or pipeline.train_input_reader
    paths = (pipeline.train_input_reader.label_map_path, scored.label_map_path)
    if paths[0] != paths[1] and label_map.read(Path(paths[1])).labels != labels.labels:
        raise ContractError(f"label maps {paths[0]} and {paths[1]} differ; use one for both")


def record_set(reader: InputReader, key_path: str, labels: LabelMap) -> RecordSet:
    """Returns the checked records of a reader; raises ContractError with the faults of all
    files."""
    files = records.find(reader.input_path, f"{key_path}.input_path")
    problems: list[str] = []
    counts: list[int] = []
    per_class = Counter[int]()
    for file in files:
        before = len(counts)
        try:
            for index, record in enumerate(records.read(Path(file))):
                boxes, faults = looked_at(record, labels)
                problems += [f"{file}, record {index}: {fault}" for fault in faults]
                per_class.update(box.number for box in boxes)
                counts.append(len(boxes))
        except ContractError as problem:  # The rest of this file cannot be read.
            problems.append(str(problem))
            continue
        if len(counts) == before:
            problems.append(f"{file}: empty, it holds no record")
    if problems:
        raise ContractError(message(key_path, problems))
    per_id = dict(sorted(per_class.items()))
    return RecordSet(files, len(counts), sum(counts), max(counts), per_id)


def looked_at(record: bytes, labels: LabelMap) -> tuple[tuple[Box, ...], list[str]]:
    """Returns the boxes of one record, and its faults."""
    try:
        image = records.from_example(record)
    except records.RecordError as problem:
        return (), [str(problem)]
    return image.boxes, list(wrong_with(image, labels))


def wrong_with(image: LabelledImage, labels: LabelMap) -> Iterator[str]:
    """Yields the faults of one record, a clause for each."""
    yield from image.problems()
    for index, box in enumerate(image.boxes):
        if box.number not in labels.labels:
            called = f" ({box.label})" if box.label else ""
            known = ", ".join(map(str, list(labels.labels)[:12]))
            more = ", …" if len(labels.labels) > 12 else ""
            yield f"box {index} has label {box.number}{called}, not in the label map: {known}{more}"
        elif box.label not in ("", labels.labels[box.number], labels.names[box.number]):
            yield (
                f"box {index} is a {box.label!r} with label {box.number}, which the label map calls"
                f" {labels.labels[box.number]!r}"
            )


def message(key_path: str, problems: list[str]) -> str:
    """Returns the error message for all problems of one reader; `key_path` is its key in the
    configuration."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    shown = "\n  ".join(problems[:MOST_SHOWN])
    more = f"\n  … and {len(problems) - MOST_SHOWN} more" if len(problems) > MOST_SHOWN else ""
    return (
        f"{key_path}: {count} in the records; nothing was trained\n  {shown}{more}\n"
        "    → copy a damaged or empty file again; for the rest repair the annotations or the label"
        " map, and convert them again"
    )
