"""Paths of manifests, generated files and runs, all below one root."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shlex
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cluster_kit.errors import HostError, UsageError
from cluster_kit.platform_table import DEFAULT_FILE, PLATFORMS
from cluster_kit.util.paths import CLONE, is_file
from cluster_kit.util.paths import is_directory as is_folder
from cluster_kit.util.untrusted import drop_set_ids, files, is_directory


@dataclass(frozen=True)
class Workspace:
    """A folder with `compose/` (manifests, generated files), `programs/` and `runs/`."""

    root: Path

    @property
    def manifests(self) -> Path:
        """The folder of the manifests; generated files are in its subfolders."""
        return self.root / "compose"

    def generated(self, cluster: str, name: str = DEFAULT_FILE) -> Path:
        """The generated file of a cluster, with the name that its platform gives it."""
        return self.manifests / cluster / name

    def portable(self, cluster: str) -> Path:
        """The file of a cluster that runs on any host, to be committed."""
        return self.root / "portable" / cluster / DEFAULT_FILE

    @property
    def programs(self) -> Path:
        """The folder in which `new` writes starter programs, each in a directory of its own."""
        return self.root / "programs"

    @property
    def fetched(self) -> Path:
        """The folder with what data steps have fetched, each in a directory of its own."""
        return self.root / "fetched"

    def runs(self, cluster: str) -> Path:
        """The folder of a cluster's runs, which may not exist yet."""
        return self.root / "runs" / cluster

    def written(self) -> list[Path]:
        """Absolute paths of what the kit writes here, which changes with each run."""
        root = Workspace(self.root.resolve())
        return [*(root.root / name for name in ("runs", "portable", "fetched")), *root.rendered()]

    def rendered(self) -> list[Path]:
        """The folders of clusters that have been rendered here."""
        return sorted(path for path in self.manifests.glob("*/") if is_rendered(path))

    def latest_runs(self) -> dict[str, Path]:
        """The newest run of each cluster that has run here, by the cluster's name."""
        newest = {path.name: newest_run_directory(path) for path in self.root.glob("runs/*")}
        return {name: run.path for name, run in newest.items() if run is not None}

    def known(self) -> list[str]:
        """Names of clusters that have run or have been rendered here."""
        committed = (path.parent.name for path in self.root.glob(f"portable/*/{DEFAULT_FILE}"))
        return sorted({*self.latest_runs(), *(path.name for path in self.rendered()), *committed})


def here() -> Workspace:
    """The current directory; without a `compose/` in it, the clone that the kit is used from.

    Raises:
        UsageError: somebody who is not trusted can have put the `compose/` there: a manifest can
            mount any directory of the caller's.
    """
    current = Path.cwd()
    manifests = current / "compose"
    if not manifests.is_dir():
        return Workspace(CLONE or current)
    whose = ""
    if any(_is_output(path) for path in (current, *current.parents)):
        whose = "is in the output of a run, where a program can have put it"
    elif _is_anothers(manifests):
        whose = f"belongs to {user_name(manifests.stat().st_uid)}, in a directory for all users"
    if whose:
        raise UsageError(
            f"{manifests} {whose}: a manifest in it could mount any directory of yours",
            "change to a directory of your own",
        )
    return Workspace(current)


def names(*folders: Path) -> list[str]:
    """The names of the TOML files in these folders, sorted, each once."""
    return sorted({path.stem for folder in folders for path in folder.glob("*.toml")})


def _is_output(path: Path) -> bool:
    """Whether a path is the directory of a run that tasks write to."""
    run = RunDirectory(path.parent)
    return path.name == run.output.name and is_file(run.record)


def _is_anothers(manifests: Path) -> bool:
    """Whether an unprivileged other user can have made a directory."""
    everybody = manifests.parent.stat().st_mode & stat.S_IWOTH
    return bool(everybody) and manifests.stat().st_uid not in (os.geteuid(), 0)


def write_atomically(path: Path, text: str, mode: int | None = None) -> None:
    """Write a file so that a reader sees the old text or the new one, never half of it.

    Missing parent directories are made. Raises OSError.

    Args:
        mode: the file's permissions, from its first byte on; None for the usual ones.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(6)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(temporary, flags, mode or 0o666), "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def is_rendered(folder: Path) -> bool:
    """Whether the kit has rendered a cluster into this directory, by a file in it."""
    for name in CLUSTER_FILES:
        with contextlib.suppress(OSError), (folder / name).open("rb") as file:
            if b"# cluster-kit " in file.read(HEAD):
                return True
    return False


CLUSTER_FILES = tuple(row.files[0] for row in PLATFORMS.values())
"""The main file's name of each platform's rendered cluster."""
HEAD = 400
"""The number of bytes at the beginning of such a file that say that the kit wrote it."""
RENDERED = (*(file for row in PLATFORMS.values() for file in row.files), "output/", ".gitignore")
"""Files that the kit writes into a cluster's directory below the manifests."""
IGNORE_ALL = ("*",)
AFRESH = "run it without --resume (make: RESUME=1)"


def ignore_in_git(folder: Path, names: Sequence[str] = IGNORE_ALL) -> None:
    """Write a .gitignore with these files of a directory, unless it already has one.

    Otherwise `git add -A` would add checkpoints and values of secrets. Raises OSError.
    """
    file = folder / ".gitignore"
    if not os.path.lexists(file):
        lines = ["# cluster-kit writes these files; they are not committed.", *names]
        write_atomically(file, "".join(f"{line}\n" for line in lines))


def write_new(files: Mapping[Path, str | bytes]) -> None:
    """Write new files, either all of them or none; missing directories are created.

    Raises:
        UsageError: one of them exists already; nothing is overwritten.
        HostError: they cannot be written.
    """
    for path in files:
        if os.path.lexists(path):
            raise UsageError(
                f"{path} exists already, and nothing is overwritten",
                "choose another name, or move it away first",
            )
    directories: list[Path] = []
    try:
        for path, content in files.items():
            for folder in reversed((path, *path.parents)):
                if folder != path and not folder.exists():
                    folder.mkdir()
                    directories.append(folder)
            data = content.encode() if isinstance(content, str) else content
            with path.open("xb") as file:
                directories.append(path)
                file.write(data)
    except OSError as error:
        for path in reversed(directories):
            with contextlib.suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise HostError(
            f"{error.filename or path} cannot be written: {error.strerror}; nothing was written",
            "change to a directory of yours with free space that is not read-only",
        ) from error


@dataclass(frozen=True)
class RunDirectory:
    """The directory of one run; `output` is what the containers see as /output."""

    path: Path

    @property
    def output(self) -> Path:
        return self.path / "output"

    @property
    def progress(self) -> Path:
        return self.output / "progress"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def outcome(self) -> Path:
        return self.path / "outcome.json"

    @property
    def manifest(self) -> Path:
        """The manifest as it was run, with the overrides and without values of secrets."""
        return self.path / "manifest.toml"

    @property
    def program(self) -> Path:
        """The folder with copies of the program and its modules, as they were at the start."""
        return self.path / "program"

    @property
    def requirements(self) -> Path:
        """The pip requirements of the program; absent if there are none."""
        return self.path / "requirements.txt"

    @property
    def override(self) -> Path:
        """The user's file that was merged into the cluster's file; absent if there was none."""
        return self.path / "override.yaml"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def record(self) -> Path:
        return self.path / "run.json"

    @property
    def owner(self) -> int:
        """The id of the user whose run it is; raises OSError."""
        return self.path.stat().st_uid

    @property
    def workspace(self) -> Path:
        """The workspace of `runs/CLUSTER/TIME`, or of a rendered file that was started without the
        kit; the run's own folder if it is not in a workspace."""
        parents = self.path.parents
        if self.path.parent.name in ("compose", "portable"):
            return next(iter(parents[1:2]), self.path)
        return parents[2] if len(parents) > 2 and parents[1].name == "runs" else self.path

    def close_to_others(self) -> None:
        """Close the directory to other users while tasks run, who could start set-user-ID files in
        it.
        """
        self.path.chmod(0o700)

    @property
    def is_closed(self) -> bool:
        """Whether this user may not look into the directory, which is there."""
        return is_folder(self.path) and not os.access(self.path, os.X_OK)

    @property
    def closed_by(self) -> str:
        """A sentence about the user who alone may look into the directory."""
        name = user_name(self.owner)
        return f"{self.path} belongs to {name}, who alone may look into it until it has a verdict"

    def refuse_closed(self) -> None:
        """Raise HostError if this user may not look into the directory."""
        if self.is_closed:
            raise HostError(
                self.closed_by,
                f"`sudo -u {user_name(self.owner)} cluster-kit …` does it as that user; "
                "`cluster-kit status` and `cluster-kit logs` show running tasks to all",
            )

    def open_to_others(self) -> None:
        """Give the directory the permissions of the directory of all runs again, after the last
        task.

        One that `up` has not made keeps its own: CLUSTER_KIT_OUTPUT may be a folder in any.
        """
        drop_set_ids(self.output)
        if not is_file(self.record):
            return
        with contextlib.suppress(OSError):
            self.path.chmod(self.path.parent.stat().st_mode & 0o777)

    def kept_files(self) -> list[Path]:
        """The files that the kit itself has written about the run: logs, events, verdict."""
        copies = (self.path / paths.name for paths in files(self.path, self.program.name))
        paths = [*self.path.glob("*"), *self.logs.glob("*"), *copies]
        return sorted(path for path in paths if path.is_file() and not path.is_symlink())

    def give_to_owner(self) -> None:
        """If root has continued another user's run, give the new files to that user."""
        with contextlib.suppress(OSError):
            if os.geteuid() == 0:
                about = self.path.stat()
                kept = self.kept_files()
                folders = {one for path in kept for one in path.parents if self.path in one.parents}
                for path in [*kept, *folders]:
                    os.chown(path, about.st_uid, about.st_gid, follow_symlinks=False)


def new_id() -> str:
    """A name for a run that no other run has."""
    return secrets.token_hex(6)


def new_run(runs: Path, now: datetime) -> RunDirectory:
    """Make a run's directory `runs/<time>/` and point `runs/latest` at it.

    Only its owner may enter it, from its first moment on: who has opened a directory in it before
    it is closed could go on to use that while tasks run.

    Raises:
        HostError: `latest` is there, and is no link.
    """
    latest = runs / "latest"
    if latest.exists() and not latest.is_symlink():
        raise HostError(
            f"{latest} is not the link to the newest run that the kit makes",
            f"move it away, or remove it: `rm -r {shlex.quote(str(latest))}`",
        )
    stem = now.strftime("%Y%m%d-%H%M%S")
    runs.mkdir(parents=True, exist_ok=True)
    ignore_in_git(runs.parent)
    for attempt in range(1, 1000):
        path = runs / (stem if attempt == 1 else f"{stem}-{attempt}")
        try:
            path.mkdir(mode=stat.S_IRWXU)
        except FileExistsError:
            continue
        _point_latest(runs, path.name)
        return _prepared(path)
    raise RuntimeError(f"{runs}: no free run directory for {stem}")


def withdraw(run: RunDirectory) -> None:
    """Remove the directory of a run that never began, so that `--resume` does not continue in it.

    `latest` then points at the newest other run.
    """
    runs = run.path.parent
    with contextlib.suppress(OSError):
        shutil.rmtree(run.path)
        (runs / "latest").unlink()
        if (newest := newest_run_directory(runs)) is not None:
            _point_latest(runs, newest.path.name)


def last_run(runs: Path) -> RunDirectory:
    """The directory of the newest run, in which a resumed run continues.

    Raises:
        UsageError: the cluster has no run yet.
        HostError: another user has started it, or its files cannot be written.
    """
    newest = newest_run_directory(runs)
    if newest is None:
        raise UsageError(f"nothing to resume: {runs} holds no run", f"{AFRESH} first")
    _refuse_anothers(newest)
    run = _prepared(newest.path)
    if not (runs / "latest").is_dir():  # the run that it pointed at was moved away
        _point_latest(runs, run.path.name)
    ignore_in_git(runs.parent)  # an older kit has not
    return run


def newest_run_directory(runs: Path) -> RunDirectory | None:
    """The run that `latest` points at; without that link, the newest; None without a run."""
    latest = runs / "latest"
    if latest.is_dir():
        target = latest.resolve()
        below = runs / target.name  # if `runs/` is a link, the path through it
        return RunDirectory(below if below.resolve() == target else target)
    directories = sorted(output.parent for output in runs.glob("*/output"))
    return RunDirectory(directories[-1].resolve()) if directories else None


def _prepared(path: Path) -> RunDirectory:
    """The run in this directory; creates its folders, since Docker would create them as root."""
    run = RunDirectory(path)
    run.output.mkdir(exist_ok=True)
    if not os.path.lexists(run.progress):
        run.progress.mkdir()
    if not is_directory(run.output, run.progress.name):
        raise HostError(
            f"{run.progress} is not a directory: a program of an earlier run put something else "
            "there",
            f"remove it, or {AFRESH}",
        )
    run.logs.mkdir(exist_ok=True)
    locked = [path for path in run.kept_files() if not os.access(path, os.W_OK)]
    if locked:
        raise HostError(
            f"{locked[0]} cannot be written by you: it belongs to another user",
            f"`sudo chown {os.getuid()} {' '.join(map(str, locked))}`, or {AFRESH}",
        )
    return run


def _refuse_anothers(run: RunDirectory) -> None:
    """Raise HostError in another user's run.

    In a container root may not write there; any other user cannot close it while tasks run.
    """
    if os.geteuid() != 0:
        with contextlib.suppress(PermissionError):  # on some shared disks all files are `nobody`'s
            run.path.chmod(stat.S_IMODE(run.path.stat().st_mode))
            return
    elif run.owner == 0:
        return
    name = user_name(run.owner)
    raise HostError(
        f"{run.path} belongs to {name}: tasks of another user cannot continue it",
        f"`sudo -u {name} cluster-kit up … --resume` continues it, or {AFRESH}",
    )


def user_name(uid: int) -> str:
    """The name of a user of this host, `#1001` if the number has none; `sudo -u` takes both."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"


def _point_latest(runs: Path, name: str) -> None:
    link = runs / f".latest.{os.getpid()}"
    link.unlink(missing_ok=True)
    link.symlink_to(name)
    link.replace(runs / "latest")
