"""The one way in which the host reads files that a container can write.

Below a run's output a program can put anything: links to files of the host, FIFOs, devices, sparse
files of terabytes, a thousand nested directories. It can replace a file between a check and an
open. So each directory on the way is opened relative to its parent, no link is followed at any
level, only regular files are opened, opening never blocks, and every read has a limit. `root` is a
directory that containers can write into but not replace; names are relative to it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

DEEPEST = 32
"""Maximum depth of directories below the root; deeper files are not found."""
MOST_LEVELS = 300
"""The deepest level of directories below the root that is read: each level needs two descriptors.
"""
MOST_ENTRIES = 500_000
"""Maximum number of directory entries that a listing reads; later entries are not found."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True)
class Found:
    """A regular file: its name below the root, its size in bytes, its time of change (Unix s)."""

    name: str
    size: int
    changed: float
    blocks: int = 0
    """Blocks of 512 bytes on the disk."""
    identity: tuple[int, int] = (0, 0)
    """Device and inode, which are equal for two names of one file."""
    mode: int = 0
    """Its permissions, and whether it runs as its owner or group."""


class Folder:
    """One directory, kept open in a `with` block, whose files are read repeatedly.

    Raises:
        OSError: at the block's begin, if the directory does not exist or its path has a link.
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
        """The status of an entry (a link's own status). Raises OSError if it does not exist."""
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def opened(self, name: str) -> int:
        """A descriptor for reading a regular file; the caller closes it. Raises OSError."""
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
        OSError: it does not exist, is not a regular file, or its path has a link.
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
    """The status of a file or directory; links are not followed.

    Raises:
        OSError: it does not exist, or its path has a link.
    """
    with _parent(root, name) as (folder, last):
        return folder.status(last)


def is_directory(root: Path, name: str | Path) -> bool:
    """Whether this is a directory, not a link to one."""
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
) -> Iterator[Found]:
    """Yields the regular files of a directory and its subdirectories, in no order.

    Yields nothing if the directory does not exist. Unreadable entries are left out.

    Args:
        below: a directory below the root; "" means the root itself.
        matches: is called with the last part of a name; the others are left out.
        deepest: how many directories down; 0 for the files of the directory itself.
        most: maximum number of entries to read.
    """
    for entry in _walk(root, below, matches, deepest, most):
        about, name = entry.about, "/".join((*entry.folders, entry.name))
        identity = about.st_dev, about.st_ino
        blocks = getattr(about, "st_blocks", 0)
        yield Found(
            name, about.st_size, about.st_mtime, blocks, identity, stat.S_IMODE(about.st_mode)
        )


def drop_set_ids(root: Path) -> None:
    """Remove the set-user-ID and set-group-ID bits of all files below a directory.

    If an entry is too deep to be read, or its directory is unreadable, the permissions of the whole
    directory are removed for other users.
    """
    is_unseen = False

    def left_out() -> None:
        nonlocal is_unseen
        is_unseen = True

    with contextlib.suppress(OSError):  # a task may have removed the owner's permissions
        root.chmod(stat.S_IMODE(root.stat().st_mode) | stat.S_IRWXU)
    for entry in _walk(root, deepest=MOST_LEVELS, left_out=left_out):
        if entry.about.st_mode & (stat.S_ISUID | stat.S_ISGID):
            with contextlib.suppress(OSError):
                _drop_set_id(entry.folder, entry.name)
    if is_unseen:
        with contextlib.suppress(OSError):
            root.chmod(stat.S_IRWXU)


def let_in(root: Path) -> None:
    """Let the caller list and empty those directories below this one that belong to the caller."""
    for _ in _walk(root, matches=lambda _name: False, deepest=MOST_LEVELS, enter=_let_in):
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


def _drop_set_id(folder: int, name: str) -> None:
    only_named = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(name, only_named, dir_fd=folder)
    try:
        about = os.fstat(file)
        _refuse_irregular(about, name)
        # This path means the open file, even if it is unreadable or its name has changed.
        Path(f"/proc/self/fd/{file}").chmod(stat.S_IMODE(about.st_mode) & 0o777)
    finally:
        os.close(file)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A regular file: its name and its directory, which is open until the next entry is requested.

    `folders` are the directories above it; the list changes during the walk. No path is built for
    each file and directory, since a path may have about 80,000 bytes.
    """

    folder: int
    folders: Sequence[str]
    name: str
    about: os.stat_result


def _walk(
    root: Path,
    below: str = "",
    matches: Callable[[str], bool] = lambda _name: True,
    deepest: int = DEEPEST,
    most: int = MOST_ENTRIES,
    left_out: Callable[[], None] = lambda: None,
    enter: Callable[[int, str], None] = lambda _folder, _name: None,
) -> Iterator[_Entry]:
    """Yields the regular files of a directory and its subdirectories; see `files`.

    Args:
        left_out: is called when an entry is left out because of a limit or because it is
            unreadable.
        enter: is called before a directory is opened, with its parent and its name.
    """
    try:
        with Folder(root, below) as folder:
            levels = [_level(folder.descriptor, ".")]  # two descriptors for each
    except FileNotFoundError:
        return
    except OSError:
        left_out()
        return
    folders = [below] if below else []
    try:
        while levels:
            descriptor, entries = levels[-1]
            try:
                entry = next(entries, None)
            except OSError:
                left_out()
                entry = None
            if entry is None:
                entries.close()
                os.close(descriptor)
                levels.pop()
                del folders[-1:]
                continue
            most -= 1
            if most < 0:
                left_out()
                return
            try:
                if entry.is_dir(follow_symlinks=False):
                    if len(levels) <= deepest:
                        enter(descriptor, entry.name)
                        levels.append(_level(descriptor, entry.name))
                        folders.append(entry.name)
                    else:
                        left_out()
                elif entry.is_file(follow_symlinks=False) and matches(entry.name):
                    about = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(about.st_mode):  # a task may have just replaced it
                        yield _Entry(descriptor, folders, entry.name, about)
            except FileNotFoundError:  # gone by now
                continue
            except OSError:
                left_out()
    finally:
        for descriptor, entries in levels:
            entries.close()
            os.close(descriptor)


def _level(folder: int, name: str) -> tuple[int, Any]:
    inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    try:
        return inner, os.scandir(inner)
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
    """Reads up to this many bytes: fewer if the file ends earlier, or was shortened meanwhile."""
    pieces = []
    while most > 0 and (piece := os.read(file, min(most, 1 << 20))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _refuse_irregular(about: os.stat_result, name: str | Path) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(name))
