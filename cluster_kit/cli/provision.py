"""`engine`, `image`, `data` and `gpus`: what clusters need on this host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table
from rich.text import Text

from cluster_kit.advice.of_program import GPU_HINT
from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import Group, app, current_host, out, print_json, say
from cluster_kit.cli.manifest_options import requested
from cluster_kit.errors import EngineError, HostError, UsageError
from cluster_kit.facts import HostFacts
from cluster_kit.image import base_image, user_image
from cluster_kit.image import push as pushing
from cluster_kit.image.convert import Conversion, convert
from cluster_kit.image.kit_image import (
    CheckLine,
    check_image,
    ensure_image,
    image_present,
    image_size,
    tag_image,
)
from cluster_kit.image.sbom import packages_of
from cluster_kit.machine.engine_install import ensure_engine
from cluster_kit.machine.host_facts import gather
from cluster_kit.plan.gpus import Device, devices, find, in_use
from cluster_kit.platforms.platform import platform_of
from cluster_kit.run.doctor import HANDS_OUT
from cluster_kit.run.prepare import prepare_locked
from cluster_kit.run.request import Request
from cluster_kit.workspace import here

image = typer.Typer(cls=Group, help="The shared training image.", no_args_is_help=True)
app.add_typer(image, name="image")

Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing if there was nothing to do.")]
Variant = Annotated[Literal["cpu", "gpu"], typer.Option("--variant", help="cpu or gpu.")]


@image.command("build")
def build(
    manifest: Annotated[
        str, typer.Argument(help="A manifest: build its image, with its requirements.")
    ] = "",
    variant: Annotated[
        Literal["cpu", "gpu"] | None,
        typer.Option("--variant", help="cpu (the default) or gpu; a manifest's GPUs decide."),
    ] = None,
    quiet: Quiet = False,
    json_: manifest_options.Json = False,
) -> None:
    """Build the shared image if it is missing or its inputs have changed."""
    if manifest and variant:
        raise UsageError(
            f"--variant {variant} with the manifest {manifest}, whose GPUs decide the variant",
            "leave one of them out",
        )
    if manifest:
        workspace = here()
        prepared = prepare_locked(
            current_host(), Request(manifest, {}), workspace, current_host().engine_or_none(), say
        )
        tag, folder = prepared.cluster.image, workspace.manifests
        platform = platform_of(prepared.cluster.engine)
        local = platform.local_name(prepared.manifest.manifest, tag)
        cluster = replace(prepared.cluster, image=local)
        built = user_image.build_dockerfile(current_host(), cluster, say, _unsaid if json_ else say)
        built |= user_image.build_layer(current_host(), cluster, folder, say, show=not json_)
        if local != tag:
            tag_image(current_host(), local, tag)
    else:
        tag, built = (
            current_host().image_tag(variant or "cpu"),
            ensure_image(current_host(), variant or "cpu", say, show=not json_),
        )
    facts = {"image": tag, "built": built, "bytes": image_size(current_host(), tag)}
    if json_:
        print_json(facts)
    elif built or not quiet:
        state = "built" if built else "up to date"
        say(f"{tag}: {state}, {image_size(current_host(), tag) / 1e9:.2f} GB")


@image.command("tag")
@requested
def tag(request: Request, *, json_: manifest_options.Json = False) -> None:
    """Print the name of a manifest's image; it changes with the image's contents."""
    name = prepare_locked(
        current_host(), request, here(), current_host().engine_or_none(), say
    ).cluster.image
    if json_:
        print_json({"image": name, "present": image_present(current_host(), name)})
    else:
        typer.echo(name)


@image.command("push")
@requested
def push(
    request: Request,
    *,
    to: Annotated[
        list[str],
        typer.Option(
            "--to",
            help="Target: ssh://USER@NODE, unix://, tcp://, or a Docker context; can be repeated.",
        ),
    ],
    json_: manifest_options.Json = False,
) -> None:
    """Copy a manifest's image to other engines, without a registry."""
    pushing.check_targets(to)
    cluster = prepare_locked(
        current_host(), request, here(), current_host().engine_or_none(), say
    ).cluster
    name = cluster.image
    absent = f"`cluster-kit image build {request.manifest}` makes it"
    if not cluster.image_is_built:
        absent = f"`docker pull {name}`, or build it"
    done = pushing.push(current_host(), name, to, _unsaid if json_ else say, absent)
    if json_:
        print_json([{"image": name, **result.as_json()} for result in done])
    pushing.refuse_if_failed(done, name)


@image.command("check")
def check(
    variant: Variant = "cpu",
    gpu: Annotated[
        bool,
        typer.Option("--gpu", help="Check the GPU variant, with one step on a GPU of this host."),
    ] = False,
    json_: manifest_options.Json = False,
) -> None:
    """Try the image: import TensorFlow and tf_keras, run one step and a server round trip."""
    driver = _gpu_driver() if gpu else ""
    lines = check_image(current_host(), _built("gpu" if gpu else variant), gpus=driver)
    if json_:
        print_json([line.__dict__ for line in lines])
    else:
        _print_lines(lines)
    if not all(line.ok for line in lines):
        raise typer.Exit(EngineError.exit_code)


@image.command("sbom")
def sbom(
    variant: Variant = "cpu",
    licences: Annotated[
        bool, typer.Option("--licences", help="Print a table of packages and licences instead.")
    ] = False,
) -> None:
    """Print what is inside the image: a software bill of materials (CycloneDX, JSON)."""
    tag = _built(variant)
    packages = packages_of(current_host(), tag)
    if not licences:
        from cluster_kit.image.sbom import sbom as written  # a tenth of a second for this verb only

        typer.echo(written(tag, packages))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for heading in ("kind", "package", "version", "licence"):
        table.add_column(heading)
    for package in packages:
        licence = Text(package.licence or "not stated")
        table.add_row(package.kind, package.name, package.version, licence)
    out.print(table)


def _unsaid(line: str) -> None:
    """Discards a line of a build's output."""


def _built(variant: Literal["cpu", "gpu"]) -> str:
    """The tag of the image; raises HostError if it is not built."""
    tag = current_host().image_tag(variant)
    if not image_present(current_host(), tag):
        hint = f"run `cluster-kit image build --variant {variant}`"
        raise HostError(f"{tag} is not built", hint)
    return tag


def _gpu_driver() -> str:
    """The driver by which the engine gives containers this host's GPUs; raises HostError if it
    cannot."""
    facts = gather(current_host(), current_host().connect())
    if facts.no_gpu or facts.gpu_refusal:
        why = facts.no_gpu or f"the engine refuses GPUs: {facts.gpu_refusal}"
        raise HostError(
            f"no GPU to check the image on: {why}", "`cluster-kit doctor` shows what is missing"
        )
    return facts.gpu_driver


def _print_lines(lines: list[CheckLine]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2))
    for line in lines:
        mark = Text("ok", style="green") if line.ok else Text("FAIL", style="bold red")
        table.add_row(mark, line.name, Text(line.detail), f"{line.seconds:.2f} s")
    out.print(table)


def _ensure_engine() -> bool:
    """Whether an engine was installed or started, since none answered."""
    with base_image.ahead(current_host(), say) as base:
        changed = ensure_engine(current_host(), say, typer.confirm, base)
        base.load()
    return changed


@app.command()
def engine(quiet: Quiet = False, json_: manifest_options.Json = False) -> None:
    """Install and start a Docker engine if none answers and that is possible."""
    changed = _ensure_engine()
    version = current_host().connect().info().get("ServerVersion", "?")
    if json_:
        print_json({"engine": version, "changed": changed})
    elif changed or not quiet:
        say(f"Docker Engine {version} answers")


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
    json_: manifest_options.Json = False,
) -> None:
    """Convert a COCO JSON file and its images to TFRecords for detection."""
    options = _options(name, shards, skip_bad)
    _convert(Conversion("coco", (annotations, images), to, label_map, options), json_)


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
    json_: manifest_options.Json = False,
) -> None:
    """Convert a Pascal VOC directory to TFRecords for detection."""
    options = (*_options(name, shards, skip_bad), *([f"--split={split}"] if split else []))
    _convert(Conversion("voc", (directory,), to, label_map, options), json_)


def _options(name: str, shards: int, skip_bad: bool) -> tuple[str, ...]:
    if "/" in name or name in ("", ".", ".."):
        raise UsageError(
            f"--name {name!r}: not the beginning of files' names",
            "write one such as --name train; --to names the directory",
        )
    return (f"--name={name}", f"--shards={shards}", *(["--skip-bad"] if skip_bad else []))


def _convert(wanted: Conversion, as_json: bool) -> None:
    _ensure_engine()
    output = convert(current_host(), wanted, say)
    if as_json:
        print_json({"to": str(wanted.to.absolute()), "said": output.splitlines()})
        return
    out.print(output, markup=False, highlight=False, soft_wrap=True)


@app.command()
def gpus(json_: manifest_options.Json = False) -> None:
    """Show this host's GPUs: index, UUID, memory, MIG slices, and which cluster has them."""
    facts = gather(current_host(), current_host().connect())
    present = devices(facts.gpus)
    if json_:
        print_json(_facts(facts, present))
    elif not present:
        say(f"no GPU: {facts.no_gpu}")
    else:
        out.print(_table(facts, present))
        for device, user in in_use(facts).items():
            say(f"{device.short} is used by {user}", to=out)
        if not facts.gpu_refusal:
            say(f"the engine hands them out by {HANDS_OUT[facts.gpu_driver]}")
    if facts.gpu_refusal:
        say(f"the engine refuses them: {facts.gpu_refusal}\n  → {GPU_HINT}")
        raise typer.Exit(HostError.exit_code)


def _holders(facts: HostFacts, device: Device, present: tuple[Device, ...]) -> list[str]:
    return sorted({cluster for held, cluster in facts.gpus_taken if find(held, present) == device})


def _facts(facts: HostFacts, present: tuple[Device, ...]) -> dict[str, object]:
    used = in_use(facts)
    return {
        "driver": facts.gpu_driver if present else None,
        "refusal": facts.gpu_refusal or None,
        "gpus": [
            {
                "index": device.short,
                "uuid": device.uuid,
                "name": device.name,
                "memory": device.memory,
                "clusters": _holders(facts, device, present),
                "used_by": used.get(device),
            }
            for device in present
        ],
    }


def _table(facts: HostFacts, present: tuple[Device, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for heading in ("gpu", "uuid", "name", "memory", "cluster"):
        table.add_column(heading, no_wrap=True)
    for device in present:
        size = f"{device.memory / 2**30:.0f} GiB"
        holders = ", ".join(_holders(facts, device, present)) or "-"
        table.add_row(device.short, device.uuid, Text(device.name), size, holders)
    return table
