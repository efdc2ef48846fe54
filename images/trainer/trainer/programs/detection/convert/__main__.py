"""A separate command: writes TFRecords and a label map from COCO or Pascal VOC annotations."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from trainer.agent.errors import ContractError, TrainerError
from trainer.programs.detection.convert import sources
from trainer.programs.detection.convert.sources import Annotated, Source, labelled
from trainer.programs.detection.data import label_map

MOST_SHOWN = 20
MAP_FILE = "label_map.pbtxt"


def main(arguments: Sequence[str]) -> int:
    """Convert the annotations; returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        run(options)
    except TrainerError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return problem.exit_code
    return 0


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command's arguments."""
    top = argparse.ArgumentParser(
        prog="cluster-kit data convert",
        description="Write TFRecords with the Object Detection API's features, and a label map.",
    )
    forms = top.add_subparsers(dest="form", required=True, metavar="coco|voc")
    coco = forms.add_parser("coco", help="a COCO JSON file and a folder of images")
    coco.add_argument("annotations", type=Path, help="instances_train.json, say")
    coco.add_argument("images", type=Path, help="the folder of the images")
    two = forms.add_parser("voc", help="a Pascal VOC directory")
    two.add_argument("directory", type=Path, help="it has Annotations/ and JPEGImages/")
    two.add_argument("--split", help="only the images of ImageSets/Main/<split>.txt")
    for form in (coco, two):
        form.add_argument("--to", type=Path, required=True, help="directory to write to")
        form.add_argument("--name", default="train", help="of the files (default: train)")
        form.add_argument("--shards", type=count, default=4, help="files (default: 4)")
        form.add_argument("--label-map", type=Path, help="use this one's numbers")
        form.add_argument("--skip-bad", action="store_true", help="leave out what is wrong")
    return top


def count(text: str) -> int:
    """Returns a number of files, 1 to 99999, for argparse."""
    value = int(text)
    if not 1 <= value <= 99999:
        raise argparse.ArgumentTypeError(f"{text}: must be 1 to 99999")
    return value


def run(given: argparse.Namespace) -> None:
    """Read, check and write; raises ContractError for problems that are not to be skipped."""
    labels = label_map.read(given.label_map) if given.label_map else None
    if given.form == "coco":
        source = sources.read_coco(given.annotations, given.images, labels)
    else:
        source = sources.read_voc(given.directory, given.split, labels)
    good = looked_through(source, skip_bad=given.skip_bad)
    from trainer.programs.detection.data import records  # here: importing TensorFlow takes seconds

    same_map(given.to / MAP_FILE, source)
    shards = min(given.shards, len(good))  # so that no file is empty
    no_others(given.to, given.name, shards)
    images = (image for image, _ in (labelled(one, source.labels) for one in good) if image)
    try:
        files = records.write(images, given.to / given.name, shards)
        (given.to / MAP_FILE).write_text(source.labels.to_text())
    except OSError as problem:
        raise ContractError(f"{given.to}: cannot be written: {problem}") from problem
    boxes = sum(len(image.boxes) for image in good)
    size = sum(file.stat().st_size for file in files)
    pattern = given.to / f"{given.name}-*.tfrecord"
    print(f"images: {len(good)}, boxes: {boxes}, classes: {len(source.labels.labels)}")
    print(f"written: {pattern} ({len(files)}, {size / 1e6:.1f} MB), {given.to / MAP_FILE}")


def looked_through(source: Source, *, skip_bad: bool) -> list[Annotated]:
    """Returns the valid images; ContractError if one is invalid and not skipped, or if there are
    none."""
    problems = list(source.problems)
    good = []
    for image in source.images:
        record, wrong = labelled(image, source.labels)
        problems += wrong
        if record:
            good.append(image)
    if problems:
        report(problems, skip_bad=skip_bad)
    if not good:
        raise ContractError("there is no image to write")
    if not source.labels.labels:
        raise ContractError("no object is annotated in any image")
    return good


def report(problems: list[str], *, skip_bad: bool) -> None:
    """Print the problems if they are to be skipped, else raise ContractError with them."""
    shown = "\n  ".join(problems[:MOST_SHOWN])
    more = f"\n  … and {len(problems) - MOST_SHOWN} more" if len(problems) > MOST_SHOWN else ""
    counted = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    if not skip_bad:
        raise ContractError(
            f"{counted} in the annotations; nothing was written\n  {shown}{more}\n"
            "    → repair them, or add --skip-bad to leave these images out"
        )
    print(f"{counted}, left out:\n  {shown}{more}")


def no_others(folder: Path, name: str, shards: int) -> None:
    """Raise ContractError if `folder` has files of another conversion: they would be read together
    with these."""
    of = re.compile(rf"{re.escape(name)}-\d+-of-(\d+)\.tfrecord")
    matches = [
        (of.fullmatch(file.name), file) for file in sorted(folder.glob(f"{name}-*.tfrecord"))
    ]
    others = [file.name for match, file in matches if match and int(match[1]) != shards]
    if others:
        raise ContractError(
            f"{folder} holds {len(others)} files of another conversion ({others[0]}, …), which"
            f" would be read together with these {shards}; remove them, or choose another --name"
        )


def same_map(file: Path, source: Source) -> None:
    """Raise ContractError if `file` exists with another label map: all parts of a data set must
    share one."""
    if file.exists() and label_map.read(file).labels != source.labels.labels:
        raise ContractError(
            f"{file} is there and has other classes; add --label-map {file} to use its numbers, or"
            " write to another directory"
        )


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
