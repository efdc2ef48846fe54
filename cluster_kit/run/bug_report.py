"""Writes an archive with everything that others need to understand a run, including versions."""

from __future__ import annotations

import contextlib
import heapq
import io
import itertools
import json
import math
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from cluster_kit.errors import KitError, UsageError
from cluster_kit.host import Host
from cluster_kit.image.kit_image import image_present
from cluster_kit.machine.host_facts import gather
from cluster_kit.platform_table import DEFAULT
from cluster_kit.platforms.engine import Container, Engine
from cluster_kit.platforms.platform import platform_of
from cluster_kit.run.doctor import check_host
from cluster_kit.run.known_secrets import containers_of, known_of
from cluster_kit.run.run_directory import last_lines
from cluster_kit.util import untrusted
from cluster_kit.util.masking import Mask, masker
from cluster_kit.util.paths import FILES
from cluster_kit.version import __version__
from cluster_kit.workspace import RunDirectory


def versions(host: Host) -> list[str]:
    """One line each: kit, engine, the platform's program, image; a missing one is named as
    missing."""
    tool = platform_of(DEFAULT).tool(host)
    version = tool.version and ".".join(map(str, tool.version))
    tag = host.image_tag("cpu")
    return [
        f"cluster-kit {__version__}, {FILES}",
        _engine(host),
        f"{tool.title} {version}" if version else tool.absent,
        f"{tag}, {'built' if image_present(host, tag) else 'not built'}",
    ]


def _engine(host: Host) -> str:
    try:
        with contextlib.closing(host.connect()) as engine:
            return f"Docker Engine {engine.info()['ServerVersion']}"
    except KitError as error:
        return error.message


KEPT = (("", (".json", ".jsonl", ".toml", ".yaml", ".log")), ("logs", (".log",)))
"""Folders of a run, and for each the suffixes of the kit's files to include."""
OF_TASKS = (("output/progress", ("",)), ("output/stacks", ("",)),
            ("output", ("result.json", "evaluator.json")))  # fmt: skip
"""Folders with files that tasks have written, and for each the suffixes of the files to include."""
LARGEST, ALL = 10_000_000, 200_000_000
"""Maximum bytes of a file (of a longer one its end is included), and of all files of tasks."""
MOST_FILES = 2_000
"""The maximum number of files of one folder: the first by name."""
ENDINGS = (".tar.gz", ".tgz")


@dataclass(frozen=True)
class Archive:
    """The names of the files in an archive, and of the tasks' files that are left out of it.

    `too_many` is the number of further files, beyond MOST_FILES of a folder.
    """

    names: tuple[str, ...]
    left_out: tuple[str, ...]
    too_many: int = 0


def archive(host: Host, run: RunDirectory, path: Path) -> Archive:
    """Write the archive, a .tar.gz, and return its content; nothing is left if that fails.

    The tasks' own files are left out if the values of the run's secrets are unknown. The engine's
    facts are left out if no engine answers.

    Raises:
        UsageError: the file's name does not end with one of ENDINGS.
        OSError: it cannot be written.
        EngineError: the engine stopped answering.
    """
    if not path.name.endswith(ENDINGS):
        raise UsageError(
            f"{path} does not end with {' or '.join(ENDINGS)}: the archive is one of tar",
            "--output FILE.tar.gz",
        )
    engine = host.engine_or_none()
    kit_files, beyond_kept = _all_names(run, KEPT)
    of_tasks, beyond = _all_names(run, OF_TASKS)
    with path.open("xb") as file:
        try:
            known = known_of(run, lambda: engine)
            containers = containers_of(run, engine)
            mask = masker(known.values.union(*(one.secrets for one in containers)))
            texts = _texts(host, run, engine, containers, kit_files)
            task_texts = _ends(run, of_tasks, ALL) if known.are_all else iter(())
            names = _write(file, run, int(host.clock.time()), chain(texts, task_texts), mask)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    left_out = () if known.are_all else tuple(of_tasks)
    return Archive(tuple(names), left_out, beyond_kept + beyond)


def _write(
    file: BinaryIO, run: RunDirectory, now: int, texts: Iterable[tuple[str, str]], mask: Mask
) -> list[str]:
    """Write the files one by one, with only one in memory; return their names."""
    names: list[str] = []
    stem = f"{run.path.parent.name}-{run.path.name}"
    with tarfile.open(fileobj=file, mode="w:gz") as bundle:
        for name, text in texts:
            names.append(name)
            content = mask(text).encode("utf-8", errors="replace")
            entry = tarfile.TarInfo(f"{stem}/{mask(name)}")
            entry.size, entry.mtime = len(content), now
            bundle.addfile(entry, io.BytesIO(content))
    return names


def _texts(
    host: Host,
    run: RunDirectory,
    engine: Engine | None,
    containers: list[Container],
    names: list[str],
) -> Iterator[tuple[str, str]]:
    yield "versions.txt", "\n".join(versions(host)) + "\n"
    if engine:
        checks = [check.as_json() for check in check_host(host, gather(host, engine), None)]
        yield "doctor.json", json.dumps(checks, indent=2) + "\n"
        states = [{key: getattr(one, key) for key in ("name", "state", "exit_code", "restarts")}
                  for one in containers]  # fmt: skip
        yield "containers.json", json.dumps(states, indent=2) + "\n"
        for one in containers:  # one at a time: each may have many megabytes
            yield f"logs-now/{one.name}.log", last_lines(engine, one, most=LARGEST)
    yield from _ends(run, names, math.inf)


def _all_names(
    run: RunDirectory, folders: Iterable[tuple[str, tuple[str, ...]]]
) -> tuple[list[str], int]:
    """The names of these files, and how many more there are."""
    all_names = [_names(run, folder, suffixes) for folder, suffixes in folders]
    return [name for names, _ in all_names for name in names], sum(more for _, more in all_names)


def _names(run: RunDirectory, folder: str, suffixes: tuple[str, ...]) -> tuple[list[str], int]:
    """The regular files of a folder below the run, and how many more there are; links are not
    followed."""

    def matches(name: str) -> bool:
        return name.endswith(suffixes)

    count = itertools.count()
    entries = untrusted.files(run.path, folder, matches=matches, deepest=0)
    names = heapq.nsmallest(
        MOST_FILES, (file.name for file, _ in zip(entries, count, strict=False))
    )
    return names, next(count) - len(names)


def _ends(run: RunDirectory, names: Iterable[str], most: float) -> Iterator[tuple[str, str]]:
    """Yields the texts of these files, in whole lines, until the total size is reached."""
    for name in names:
        with contextlib.suppress(OSError):  # a task has just replaced it
            text = untrusted.read_end(run.path, name, LARGEST)
            if len(text) == LARGEST:
                text = text.partition(b"\n")[2]
            if (most := most - len(text)) < 0:
                break
            yield name, text.decode("utf-8", errors="replace")
