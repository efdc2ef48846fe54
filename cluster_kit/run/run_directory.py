"""The files in a run's directory (record, sources, events, logs), and the disk's free space."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tomllib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import dropwhile, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from cluster_kit.errors import EngineError, HostError, UsageError
from cluster_kit.host import Moment
from cluster_kit.platform_table import PLATFORMS
from cluster_kit.platforms.engine import Container, Engine, Event
from cluster_kit.platforms.platform import platform_of
from cluster_kit.resolved import Cluster
from cluster_kit.util.masking import Mask
from cluster_kit.util.paths import is_file
from cluster_kit.util.terminal import harmless
from cluster_kit.util.toml_text import document
from cluster_kit.workspace import RunDirectory, write_atomically

if TYPE_CHECKING:  # building the manifest's models takes long; many commands read none
    from pydantic import TypeAdapter

    from cluster_kit.manifest.load import Loaded


@dataclass(frozen=True)
class Record:
    """The content of run.json: the started cluster, the time of its start, and its run's id.

    `began` is when the command began, `since` (Unix seconds) when its containers were about to be
    started; `timings_s` are the steps until then. `id` is the containers' label `labels.RUN`.
    `sizes` are the sizes in bytes of the progress files at its start: this part belongs to an
    earlier run.
    """

    id: str
    cluster: Cluster
    began: Moment
    since: float
    timings_s: Mapping[str, float]
    sizes: Mapping[str, int]
    program: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of the user's program, of each of its modules and of its files of settings, by the
    path below its directory."""


@cache
def _records() -> TypeAdapter[Record]:
    """Created at its first use: with pydantic's import this is a quarter of the time of `status`,
    and few commands read a record."""
    from pydantic import TypeAdapter

    return TypeAdapter(Record)


def write_record(run: RunDirectory, record: Record) -> None:
    """Write run.json; raises OSError."""
    write_atomically(run.record, _records().dump_json(record, indent=2).decode() + "\n")


def read_record(run: RunDirectory) -> Record | None:
    """The record of a run; None if there is none, since `up` did not start it.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        text = _in_this_form(run.record.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(run, str(error.strerror)) from None
    from pydantic import ValidationError

    try:
        return _records().validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise _unreadable(run, f"{where}: {first['msg']} (another version of the kit?)") from None


def recorded_platform(run: RunDirectory) -> str | None:
    """The name of the platform in a run's record; None if there is no record of this kit's.

    It is for commands that need no more of the record.
    """
    try:
        name = json.loads(run.record.read_bytes())["cluster"]["engine"]
        return name if name in PLATFORMS else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _in_this_form(text: bytes) -> bytes:
    """The record; fields that an older kit saved under other names are renamed."""
    try:
        record = json.loads(text)
        cluster = record["cluster"]
        for task in cluster["tasks"]:
            if "shm" in task:
                task["shm_size"] = task.pop("shm")
        if "settings" not in cluster:
            platform = platform_of(cluster["engine"])
            cluster |= {
                "settings": cluster.get(platform.name) or {},
                "one_host": platform.one_host,
                "host_network": platform.host_network,
            }
        return json.dumps(record).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return text  # the reader reports what is wrong


def _unreadable(run: RunDirectory, why: str) -> UsageError:
    return UsageError(
        f"{run.record} cannot be read: {why}",
        "`cluster-kit logs NAME` shows the logs of its tasks, `cluster-kit down NAME` removes it",
    )


def is_recorded(containers: Sequence[Container]) -> bool:
    """Whether `up` started these containers, so that another process can continue the run."""
    return is_file(run_of(containers).record)


def unjudged(containers: Sequence[Container]) -> bool:
    """Whether these containers belong to a run that was started and has no verdict yet."""
    if not any(container.leader and container.started > 0 for container in containers):
        return False
    run = run_of(containers)
    if run.is_closed:  # no run that has a verdict is
        return True
    try:
        record = read_record(run)
    except UsageError:
        return False
    from cluster_kit.run.outcome import read_outcome  # it imports the modules that judge a run

    return record is not None and read_outcome(run, record.id) is None


def kept_run(containers: Sequence[Container]) -> RunDirectory | None:
    """The run whose containers were kept on purpose; None if they were not."""
    run = run_of(containers)
    try:
        record = read_record(run)
    except UsageError:
        return None
    from cluster_kit.run.outcome import read_outcome  # see `unjudged`

    outcome = read_outcome(run, record.id) if record else None
    return run if outcome is not None and outcome.kept else None


def run_of(containers: Sequence[Container]) -> RunDirectory:
    """The run directory of these containers, which have it mounted as /output.

    It has no record if they were started without the kit.
    """
    return RunDirectory(Path(containers[0].output).parent)


_PARALLEL = 8
LAST_BYTES = 1 << 20
_LONGEST = 2 << 20
"""The number of bytes at the end of a saved log that contain its last line."""


def read_events(run: RunDirectory, since: float) -> list[Event]:
    """The saved events since Unix time `since`; invalid lines are left out."""
    events = []
    with contextlib.suppress(OSError):
        for line in _events(run).read_bytes().splitlines():
            with contextlib.suppress(ValueError, TypeError):
                events.append(Event(**json.loads(line)))
    return [event for event in events if event.time >= since]


def _events(run: RunDirectory) -> Path:
    return run.path / "events.jsonl"


def save_events(run: RunDirectory, events: Sequence[Event]) -> None:
    """Append the events that the run's events.jsonl does not have yet; raises OSError."""
    with _events(run).open("a+", encoding="utf-8") as file:
        file.seek(0)
        saved = set(file)
        lines = (json.dumps(_facts(event)) + "\n" for event in events)
        file.writelines(line for line in lines if line not in saved)


def _facts(event: Event) -> dict[str, Any]:
    facts = asdict(event)
    return facts if facts.pop("said") == "" else {**facts, "said": event.said}


def log_lines(
    engine: Engine, container: Container, *, stderr: bool = False, mask: Mask = str
) -> Iterator[str]:
    """Yields the lines that the engine still has of a log, without terminal control sequences.

    Args:
        mask: masks secrets; some engines do not mask them themselves.
    Raises:
        EngineError: the engine does not return the log.
    """
    return map(mask, map(harmless, engine.lines(container.id, stderr=stderr)))


def without_log(engine: Engine, containers: Sequence[Container]) -> list[str]:
    """The names of the tasks whose log the engine does not return."""

    def lacks(container: Container) -> bool:
        try:
            next(log_lines(engine, container), None)
        except EngineError:
            return True
        return False

    return _names_of(containers, lacks)


def _names_of(containers: Sequence[Container], which: Callable[[Container], bool]) -> list[str]:
    """The names of the containers for which a function returns True, called for some at once."""
    with ThreadPoolExecutor(_PARALLEL) as pool:
        found = list(pool.map(which, containers))
    return [container.name for container, is_one in zip(containers, found, strict=True) if is_one]


def last_lines(
    engine: Engine,
    container: Container,
    *,
    stderr: bool = False,
    most: int = LAST_BYTES,
    mask: Mask = str,
) -> str:
    """The end of a log, `most` characters; "" if the engine does not return the log."""
    lines: deque[str] = deque()
    size = 0
    with contextlib.suppress(EngineError):
        for line in log_lines(engine, container, stderr=stderr, mask=mask):
            lines.append(line)
            size += len(line) + 1
            while size > most:
                size -= len(lines.popleft()) + 1
    return "\n".join(lines)


def save_logs(
    run: RunDirectory, engine: Engine, containers: Sequence[Container], mask: Mask = str
) -> list[str]:
    """Save the logs that the engine still has; raises OSError.

    Returns the names of the tasks whose log it does not return. A resumed run appends to the files
    of the run that it continues; lines that were saved before are skipped.
    """

    def lacks(container: Container) -> bool:
        try:
            save_log(
                run.logs / f"{container.name}.log", lambda: log_lines(engine, container, mask=mask)
            )
        except EngineError:
            return True
        return False

    return _names_of(containers, lacks)


def save_log(path: Path, read: Callable[[], Iterator[str]]) -> None:
    """Append the lines of a log that a file does not have yet; raises OSError.

    Args:
        read: returns the lines of the whole log, each with its time in front.
    """
    with path.open("ab+") as file:
        last, lines = _last_line(file), read()
        if last and last in read():
            lines = islice(dropwhile(lambda line: line != last, lines), 1, None)
        file.writelines(f"{line}\n".encode() for line in lines)


def _last_line(file: BinaryIO) -> str:
    """The last line of a file, "" if it has none."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - _LONGEST))
    return file.read().rstrip(b"\n").rpartition(b"\n")[2].decode("utf-8", "replace")


MOST_BYTES = 1_000_000
"""The maximum bytes of all copies of a program's files; for further files only hashes are saved."""


def keep_manifest(run: RunDirectory, loaded: Loaded, command: str, mask: Mask) -> None:
    """Write the manifest with its overrides applied; the file's text if there are none.

    Args:
        command: the command that renders the manifest with its overrides, for a comment.
    Raises:
        OSError: the file cannot be written, or the manifest's file no longer exists.
    """
    text = loaded.path.read_text(encoding="utf-8-sig", errors="replace")
    try:
        unchanged = tomllib.loads(text) == loaded.values
    except (ValueError, RecursionError):  # it was edited in the meantime
        unchanged = False
    if not unchanged:
        text = f"# {command}\n{document(loaded.values)}"
    write_atomically(run.manifest, mask(text))


def keep_override(run: RunDirectory, file: Path | None, mask: Mask) -> None:
    """Copy a user's file that was merged into the cluster's file; raises OSError."""
    run.override.unlink(missing_ok=True)  # of an earlier part of a resumed run
    if file is not None:
        write_atomically(run.override, mask(file.read_text(encoding="utf-8", errors="replace")))


def keep_requirements(run: RunDirectory, text: str, mask: Mask) -> None:
    """Write the pip requirements that are installed for the program, if any; raises OSError."""
    run.requirements.unlink(missing_ok=True)  # of an earlier part of a resumed run
    if text:
        write_atomically(run.requirements, mask(text))


def keep_program(
    run: RunDirectory, files: Sequence[Path], settings: Sequence[Path], mask: Mask
) -> dict[str, str]:
    """Copy a program's files into the run, and return the SHA-256 of each by its name.

    Names are relative to the first file's directory. Files that are not text are not copied.

    Args:
        settings: further files of the program. They are hashed, up to MOST_BYTES, but not copied,
            since they can contain secrets that are unknown to the kit.
    Raises:
        OSError: the copies cannot be written.
    """
    if run.program.is_dir():
        shutil.rmtree(run.program)  # a resumed run has the file of the previous run
    hashes, left = dict[str, str](), MOST_BYTES
    for path in files:
        name = path.relative_to(files[0].parent).as_posix()
        try:
            with path.open("rb") as file:
                hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
                file.seek(0)
                text = file.read(left + 1).decode()
        except (OSError, UnicodeDecodeError):
            continue
        if (size := len(text.encode())) <= left:
            left -= size
            write_atomically(run.program / name, mask(text))
    for path in settings:
        name = path.relative_to(files[0].parent).as_posix()
        with contextlib.suppress(OSError), path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
            if len(content) <= MOST_BYTES:
                hashes[name] = hashlib.sha256(content).hexdigest()
    return hashes


FULL = (errno.ENOSPC, errno.EDQUOT)
RESERVED_BYTES = 256 * 1024
"""Bytes reserved for the outcome and the last lines of a run that has filled its disk."""
ROOM_BYTES = 64 << 20
_RESERVE = ".reserve"


def reserve(run: RunDirectory) -> None:
    """Reserve space on the disk for the files of the run's end; raises OSError."""
    (run.path / _RESERVE).write_bytes(bytes(RESERVED_BYTES))


def release(run: RunDirectory) -> None:
    """Free the reserved space; directories that were removed in the meantime are created again."""
    with contextlib.suppress(OSError):
        run.logs.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        (run.path / _RESERVE).unlink(missing_ok=True)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise HostError, with the folder and its free space, if the `with` block raises OSError."""
    try:
        yield
    except OSError as error:
        raise HostError(f"{folder} cannot be written: {why(error, folder)}", HINT) from None


HINT = "free space there or get write access, then run the command again"


def why(error: OSError, folder: Path) -> str:
    """The system's message for the error, with the free space if the disk is full."""
    for path in (folder, *folder.parents):
        if path.is_symlink() and not path.exists():
            return f"{path} is a link to {path.readlink()}, which does not exist; is it mounted?"
    words = error.strerror or type(error).__name__
    return f"{words} ({free(folder)})" if error.errno in FULL else words


def free(folder: Path) -> str:
    """`0 MB of 64 MB free` for the disk of a folder, or of its nearest existing parent."""
    with contextlib.suppress(OSError):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        disk = os.statvfs(existing)
        available, whole = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
        return f"{_megabytes(available)} of {_megabytes(whole)} free"
    return "the free space is unknown"


def has_room(folder: Path) -> bool:
    """Whether a folder's disk has space for more than a few files; False if unknown."""
    with contextlib.suppress(OSError):
        disk = os.statvfs(folder)
        return disk.f_bavail * disk.f_frsize >= ROOM_BYTES
    return False


def _megabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count // 1_000_000} MB"


def is_full(folder: Path) -> bool:
    """Whether nothing more can be written into a folder because its disk is full.

    The check writes to a file without a name, if the file system has such files, since tasks write
    to the folder, too.
    """
    nameless = getattr(os, "O_TMPFILE", 0)
    try:
        if not nameless:
            return not os.statvfs(folder).f_bavail
        file = os.open(folder, nameless | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in FULL:
            return True
        with contextlib.suppress(OSError):
            return not os.statvfs(folder).f_bavail
        return False
    try:
        os.write(file, bytes(4096))
        os.fsync(file)
    except OSError as error:
        return error.errno in FULL
    finally:
        os.close(file)
    return False
