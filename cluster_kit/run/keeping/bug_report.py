"""One archive of all that others need to understand a run: no results, and no secrets."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from cluster_kit.cluster import Cluster
from cluster_kit.engine.containers import Container
from cluster_kit.engine.interface import Engine
from cluster_kit.errors import UsageError
from cluster_kit.host.gather import gather
from cluster_kit.run.checks.doctor import check_host
from cluster_kit.run.keeping.evidence import last_lines
from cluster_kit.run.keeping.record import read_record
from cluster_kit.run.keeping.secrets import values_of
from cluster_kit.run.versions import versions
from cluster_kit.util.masking import looks_secret, masked
from cluster_kit.workspace import RunDirectory

KEPT = ("*.json", "*.jsonl", "*.toml", "*.yaml", "logs/*.log", "output/progress/*",
        "output/stacks/*", "output/result.json", "output/evaluator.json")  # fmt: skip
LARGEST = 20_000_000
"""Bytes of a file that are taken: of a longer one its end."""


def archive(run: RunDirectory, engine: Engine | None, path: Path) -> list[str]:
    """Write the archive, a .tar.gz; the names of what is in it. Of one that fails nothing is left.

    Args:
        engine: None if none answers; what it would tell is then left out.
    Raises:
        OSError: it cannot be written.
        EngineError: the engine stopped answering.
    """
    cluster = _cluster(run)
    containers = _containers(run, engine)
    secrets = {value for container in containers for value in container.secrets}
    secrets |= values_of(cluster, ()) | in_arguments(cluster) if cluster else set()
    with path.open("xb") as file:
        try:
            return _write(file, run, dict(_texts(run, engine, containers)), secrets)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def in_arguments(cluster: Cluster) -> set[str]:
    """What tasks have as `--api-token VALUE` or `--api-token=VALUE`, by names as of variables."""
    found = set()
    for task in cluster.tasks:
        for argument, following in zip(task.arguments, (*task.arguments[1:], "-"), strict=False):
            option, equals, value = argument.partition("=")
            if option.startswith("-") and looks_secret(option.lstrip("-").replace("-", "_")):
                found.add(value if equals else following)
    return {value for value in found if not value.startswith("-")}


def _write(
    file: BinaryIO, run: RunDirectory, texts: Mapping[str, str], secrets: set[str]
) -> list[str]:
    stem = f"{run.path.parent.name}-{run.path.name}"
    with tarfile.open(fileobj=file, mode="w:gz") as made:
        for name, text in texts.items():
            content = masked(text, secrets).encode()
            entry = tarfile.TarInfo(f"{stem}/{name}")
            entry.size, entry.mtime = len(content), int(time.time())
            made.addfile(entry, io.BytesIO(content))
    return list(texts)


def _texts(
    run: RunDirectory, engine: Engine | None, containers: list[Container]
) -> Iterator[tuple[str, str]]:
    yield "versions.txt", "\n".join(versions()) + "\n"
    if engine:
        checks = [asdict(check) for check in check_host(gather(engine), None)]
        yield "doctor.json", json.dumps(checks, indent=2) + "\n"
        states = [{key: getattr(one, key) for key in ("name", "state", "exit_code", "restarts")}
                  for one in containers]  # fmt: skip
        yield "containers.json", json.dumps(states, indent=2) + "\n"
        for task, text in _logs(engine, containers).items():
            yield f"logs-now/{task}.log", text
    for pattern in KEPT:
        for file in sorted(run.path.glob(pattern)):
            if file.is_file():
                yield file.relative_to(run.path).as_posix(), _end(file)


def _logs(engine: Engine, containers: list[Container]) -> Mapping[str, str]:
    return {one.name: last_lines(engine, one, most=LARGEST) for one in containers}


def _containers(run: RunDirectory, engine: Engine | None) -> list[Container]:
    """Those of this run that are still there."""
    if engine is None:
        return []
    found = (one for name in engine.clusters() for one in engine.containers(name))
    return [one for one in found if one.output and Path(one.output).parent == run.path]


def _cluster(run: RunDirectory) -> Cluster | None:
    """As it was started; None if it was not by `up`, or by another version of the kit."""
    with contextlib.suppress(UsageError):
        record = read_record(run)
        return record.cluster if record else None
    return None


def _end(file: Path) -> str:
    with file.open("rb") as opened:
        size = opened.seek(0, io.SEEK_END)
        opened.seek(max(0, size - LARGEST))
        return opened.read().decode("utf-8", errors="replace")
