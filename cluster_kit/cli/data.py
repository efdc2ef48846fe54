"""The verbs that make data sets: `data convert coco`, `data convert voc`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cluster_kit.cli import options
from cluster_kit.cli.app import Group, app, current_host, out, print_json, say
from cluster_kit.image.convert import Conversion, convert
from cluster_kit.machine.engine_install import ensure_engine

data = typer.Typer(cls=Group, help="Data sets for the built-in programs.", no_args_is_help=True)
converting = typer.Typer(
    cls=Group, help="Write detection's TFRecords and label map.", no_args_is_help=True
)
app.add_typer(data, name="data")
data.add_typer(converting, name="convert")

To = Annotated[Path, typer.Option("--to", help="The directory to write to.")]
Name = Annotated[str, typer.Option("--name", help="Name of the files: train, validate.")]
Shards = Annotated[int, typer.Option("--shards", min=1, max=99999, help="Number of files.")]
Labels = Annotated[
    Path | None, typer.Option("--label-map", help="Use the numbers of this label map.")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Skip images with invalid annotations.")]


@converting.command("coco")
def coco(
    annotations: Annotated[Path, typer.Argument(help="COCO's JSON file of the annotations.")],
    images: Annotated[Path, typer.Argument(help="The folder of the images.")],
    to: To,
    name: Name = "train",
    shards: Shards = 4,
    label_map: Labels = None,
    skip_bad: SkipBad = False,
    json_: options.Json = False,
) -> None:
    """Convert a COCO JSON file and its images to TFRecords for detection."""
    given = _options(name, shards, skip_bad)
    _convert(Conversion("coco", (annotations, images), to, label_map, given), json_)


@converting.command("voc")
def voc(
    directory: Annotated[Path, typer.Argument(help="Directory with Annotations/ and JPEGImages/.")],
    to: To,
    split: Annotated[
        str, typer.Option("--split", help="Only the images of ImageSets/Main/SPLIT.txt.")
    ] = "",
    name: Name = "train",
    shards: Shards = 4,
    label_map: Labels = None,
    skip_bad: SkipBad = False,
    json_: options.Json = False,
) -> None:
    """Convert a Pascal VOC directory to TFRecords for detection."""
    given = (*_options(name, shards, skip_bad), *([f"--split={split}"] if split else []))
    _convert(Conversion("voc", (directory,), to, label_map, given), json_)


def _options(name: str, shards: int, skip_bad: bool) -> tuple[str, ...]:
    return (f"--name={name}", f"--shards={shards}", *(["--skip-bad"] if skip_bad else []))


def _convert(wanted: Conversion, as_json: bool) -> None:
    ensure_engine(current_host(), say, typer.confirm)
    said = convert(current_host(), wanted, say)
    if as_json:
        print_json({"to": str(wanted.to.absolute()), "said": said.splitlines()})
        return
    out.print(said, markup=False, highlight=False, soft_wrap=True)
