"""Converts annotations to detection's TFRecords: the converter of the image, on this host's files.

The container sees only the named files and directories, under the same paths, including the
directory to write to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cluster_kit.errors import EngineError, UsageError
from cluster_kit.host import Host
from cluster_kit.image.base_image import CONFINED, TMP, bind
from cluster_kit.image.kit_image import BUILD_IT, Say, ensure_image
from cluster_kit.platforms.docker.docker_engine import caller_of
from cluster_kit.util.nearest import did_you_mean_path, near_or
from cluster_kit.util.paths import exists

CONVERTER = "trainer.programs.detection.convert"
REFUSED = 2
"""The converter's exit code for invalid annotations."""


@dataclass(frozen=True)
class Conversion:
    """The input, the directory for the records, and the converter's other options."""

    form: str
    """`coco` or `voc`."""
    sources: tuple[Path, ...]
    """The converter's arguments: annotations and images, or one directory."""
    to: Path
    label_map: Path | None = None
    options: tuple[str, ...] = ()

    def absolute(self) -> Conversion:
        """The conversion with absolute paths, as the container needs them."""
        label_map = self.label_map.absolute() if self.label_map else None
        sources = tuple(path.absolute() for path in self.sources)
        return Conversion(self.form, sources, self.to.absolute(), label_map, self.options)


def convert(host: Host, wanted: Conversion, say: Say) -> str:
    """Convert the input, and return the converter's output about the written records.

    Raises:
        UsageError: a path was not found, or annotations are invalid; nothing was written.
        HostError, EngineError: the image, or the container, cannot be started.
    """
    wanted = wanted.absolute()
    for path in (*wanted.sources, *filter(None, [wanted.label_map])):
        if not path.exists():
            near = did_you_mean_path(str(path), Path(), exists)
            raise UsageError(f"{path} was not found", near_or(near, "fix the path"))
    try:
        wanted.to.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(
            f"--to {wanted.to}: cannot be made: {problem.strerror}", "name a directory of yours"
        ) from problem
    ensure_image(host, "cpu", say)
    done = host.processes.run(
        convert_command(host.image_tag("cpu"), wanted, caller_of(host.connect))
    )
    if done.ok:
        return done.output.strip()
    if done.code == REFUSED:
        said = done.errors.strip()
        stderr = f"\n{said}".partition("\nerror: ")[2] or said  # TensorFlow's lines are before it
        message, _, hint = stderr.rpartition("\n    → ")
        raise UsageError(message or stderr, hint if message else "")
    raise EngineError(f"the converter ended with {done.code}:\n{done.tail()}", BUILD_IT)


def convert_command(tag: str, wanted: Conversion, user: str) -> tuple[str, ...]:
    """The command that runs the converter of the image `tag`; `wanted` has absolute paths."""
    label_map = (f"--label-map={wanted.label_map}",) if wanted.label_map else ()
    return (
        *("docker", "run", *CONFINED, "--init", f"--user={user}", TMP),
        *mounts(wanted),
        *("--entrypoint=python3", tag, "-m", CONVERTER, wanted.form),
        *(f"--to={wanted.to}", *label_map, *wanted.options),
        *("--", *map(str, wanted.sources)),
    )


def mounts(wanted: Conversion) -> Iterator[str]:
    """A mount option for each directory or file that is not inside another one; only `to` is
    writable."""
    yield bind(wanted.to, wanted.to)
    read = {*wanted.sources, *filter(None, [wanted.label_map])}
    for path in sorted(read):
        if not _inside(path, (read - {path}) | {wanted.to}) and path != wanted.to:
            yield f"{bind(path, path)},readonly"


def _inside(path: Path, other_paths: Iterable[Path]) -> bool:
    return any(other in path.parents for other in other_paths)
