"""The one way in which the host reads files that a container can write.

Below a run's output a program can put anything: links to files of the host, FIFOs, devices, sparse
files of terabytes, a thousand nested directories. It can exchange one for the other between a look
and an open. So each directory on the way is opened relative to the one before it, no link is
followed at any level, only regular files are opened, opening never blocks, and all is bounded.
`root` is a directory that containers can write into but not replace; names are relative to it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

DEEPEST = 32
"""Directories below the root; what lies deeper is not found."""
MOST_LEVELS = 300
"""Directories below the root at most, whoever asks: each takes two descriptors."""
MOST_ENTRIES = 500_000
"""Directory entries that one listing looks at; what comes later is not found."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True)
class Found:
    """A regular file: its name below the root, its size in bytes, its time of change (Unix s)."""

    name: str
    size: int
    changed: float
    blocks: int = 0
    """Of 512 bytes on the disk."""
    identity: tuple[int, int] = (0, 0)
    """Device and inode: the same for two names of one file."""
    mode: int = 0
    """Its permissions, and whether it runs as its owner or group."""


class Folder:
    """One directory, held open in a `with` block, whose files are looked at again and again.

    Raises:
        OSError: when the block begins: the directory is not there, or a link is on the way.
    """

    def __init__(self, root: Path, below: str | Path = "") -> None:
        self._root = root
        self._names = _parts(below) if str(below) else []

    def __enter__(self) -> Folder:
        self.descriptor = os.open(self._root, _FOLDER)
        try:
            for name in self._names:
                inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=self.descriptor)
                os.close(self.descriptor)
                self.descriptor = inner
        except OSError:
            os.close(self.descriptor)
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.descriptor)

    def status(self, name: str) -> os.stat_result:
        """What is known of an entry; of a link as such. Raises OSError if there is none."""
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def opened(self, name: str) -> int:
        """A descriptor of a regular file, to be read; the caller closes it. Raises OSError."""
        _refuse_irregular(self.status(name), name)
        file = os.open(name, _FILE, dir_fd=self.descriptor)
        try:
            _refuse_irregular(os.fstat(file), name)
        except OSError:
            os.close(file)
            raise
        return file


def opened(root: Path, name: str | Path) -> int:
    """A descriptor of a regular file, to be read; the caller closes it.

    Raises:
        OSError: there is none of this name, it is not a regular file, or a link is on the way.
    """
    with _parent(root, name) as (folder, last):
        return folder.opened(last)


def read(root: Path, name: str | Path, most: int) -> bytes:
    """The content of a regular file.

    Raises:
        OSError: see `opened`, or it has more than `most` bytes (EFBIG).
    """
    with _reading(root, name) as file:
        content = _read(file, most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(name))
    return content


def read_end(root: Path, name: str | Path, most: int) -> bytes:
    """The last `most` bytes of a regular file; raises OSError as `opened` does."""
    with _reading(root, name) as file:
        os.lseek(file, max(0, os.fstat(file).st_size - most), os.SEEK_SET)
        return _read(file, most)


def status(root: Path, name: str | Path) -> os.stat_result:
    """What is known of a file or directory; of a link as such, which is never followed.

    Raises:
        OSError: there is none of this name, or a link is on the way to it.
    """
    with _parent(root, name) as (folder, last):
        return folder.status(last)


def is_directory(root: Path, name: str | Path) -> bool:
    """Whether this is a directory, and no link to one."""
    try:
        return stat.S_ISDIR(status(root, name).st_mode)
    except OSError:
        return False


def files(
    root: Path,
    below: str = "",
    *,
    matches: Callable[[str], bool] = lambda _name: True,
    deepest: int = DEEPEST,
    most: int = MOST_ENTRIES,
    left_out: Callable[[str], None] = lambda _name: None,
    enter: Callable[[int, str], None] = lambda _folder, _name: None,
) -> Iterator[Found]:
    """Yields the regular files of a directory and of those in it, in no order.

    Nothing if the directory is not there. What cannot be read is left out.

    Args:
        below: a directory below the root; the root itself if it is empty.
        matches: is called with the last part of a name; the others are left out.
        deepest: how many directories down; 0 for the files of the directory itself.
        most: how many entries are looked at.
        left_out: is called with a directory of which something was left out, because of one of
            these bounds or because it cannot be read.
        enter: is called before a directory is opened, with the one that it is in, and its name.
    """
    try:
        with Folder(root, below) as folder:
            top = os.dup(folder.descriptor)
            yield from _walk(top, below, matches, deepest, most, left_out, enter)
    except FileNotFoundError:
        return
    except OSError:
        left_out(below)


def drop_set_ids(root: Path) -> None:
    """Let no file below a directory run as its owner or group for whoever starts it.

    Where something lies too deep to be looked at, or in a directory that cannot be read, the whole
    directory is closed to others.
    """
    unseen: list[str] = []
    with contextlib.suppress(OSError):  # a task may have taken its owner's rights away
        root.chmod(stat.S_IMODE(root.stat().st_mode) | stat.S_IRWXU)
    for found in files(root, deepest=MOST_LEVELS, left_out=unseen.append):
        if found.mode & (stat.S_ISUID | stat.S_ISGID):
            with contextlib.suppress(OSError), _parent(root, found.name) as (folder, last):
                _drop_set_id(folder, last)
    if unseen:
        with contextlib.suppress(OSError):
            root.chmod(stat.S_IRWXU)


def let_in(root: Path) -> None:
    """Let the caller list and empty the directories below this one that are the caller's own."""
    for _file in files(root, deepest=MOST_LEVELS, matches=lambda _name: False, enter=_let_in):
        pass


def _let_in(folder: int, name: str) -> None:
    only_named = getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        inner = os.open(name, only_named, dir_fd=folder)
        try:
            about = os.fstat(inner)
            if about.st_uid == os.geteuid() and ~about.st_mode & stat.S_IRWXU:
                mode = stat.S_IMODE(about.st_mode) | stat.S_IRWXU
                Path(f"/proc/self/fd/{inner}").chmod(mode)
        finally:
            os.close(inner)


def _drop_set_id(folder: Folder, name: str) -> None:
    only_named = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(name, only_named, dir_fd=folder.descriptor)
    try:
        about = os.fstat(file)
        _refuse_irregular(about, name)
        # The file that is open, even if it may not be read, and whatever the name is by now.
        Path(f"/proc/self/fd/{file}").chmod(stat.S_IMODE(about.st_mode) & 0o777)
    finally:
        os.close(file)


def _walk(
    folder: int,
    below: str,
    matches: Callable[[str], bool],
    deepest: int,
    most: int,
    left_out: Callable[[str], None],
    enter: Callable[[int, str], None],
) -> Iterator[Found]:
    """Closes the descriptor `folder`. One descriptor is open for each level."""
    levels = [(folder, below, os.scandir(folder))]
    try:
        while levels:
            folder, path, entries = levels[-1]
            entry = next(entries, None)
            if entry is None:
                entries.close()
                os.close(folder)
                levels.pop()
                continue
            most -= 1
            if most < 0:
                left_out(path)
                return
            name = f"{path}/{entry.name}" if path else entry.name
            try:
                if entry.is_dir(follow_symlinks=False):
                    if len(levels) <= deepest:
                        enter(folder, entry.name)
                        levels.append(_level(folder, entry.name, name))
                    else:
                        left_out(name)
                elif entry.is_file(follow_symlinks=False) and matches(entry.name):
                    about = entry.stat(follow_symlinks=False)
                    if not stat.S_ISREG(about.st_mode):  # it has just become something else
                        continue
                    identity = about.st_dev, about.st_ino
                    blocks = getattr(about, "st_blocks", 0)
                    mode = stat.S_IMODE(about.st_mode)
                    yield Found(name, about.st_size, about.st_mtime, blocks, identity, mode)
            except FileNotFoundError:  # gone by now
                continue
            except OSError:
                left_out(path)
    finally:
        for folder, _, entries in levels:
            entries.close()
            os.close(folder)


def _level(folder: int, last: str, name: str) -> tuple[int, str, Any]:
    inner = os.open(last, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    try:
        return inner, name, os.scandir(inner)
    except OSError:
        os.close(inner)
        raise


def _parts(name: str | Path) -> list[str]:
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise OSError(errno.EINVAL, "not a name below a directory", str(name))
    return list(parts)


@contextlib.contextmanager
def _parent(root: Path, name: str | Path) -> Iterator[tuple[Folder, str]]:
    """The directory that a name is in, and the last part of the name."""
    *folders, last = _parts(name)
    with Folder(root, Path(*folders) if folders else "") as folder:
        yield folder, last


@contextlib.contextmanager
def _reading(root: Path, name: str | Path) -> Iterator[int]:
    file = opened(root, name)
    try:
        yield file
    finally:
        os.close(file)


def _read(file: int, most: int) -> bytes:
    """So many bytes, or fewer at the file's end, which may come nearer meanwhile."""
    pieces = []
    while most > 0 and (piece := os.read(file, min(most, 1 << 20))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _refuse_irregular(about: os.stat_result, name: str | Path) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(name))
