"""Locks between processes. Each is released when the process that holds it ends, in any way.

A lock of one user is a file in a directory that only this user can write: see `own_directory`. A
lock between users is a socket, and the kernel says which process holds it: see `between_users`.
Neither blocks if another user has put something else in its place.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pwd
import socket
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.1
ASK_S = 1
"""Seconds to wait for the process that holds a name."""
RUNTIME, SHARED = Path("/run/user"), Path("/tmp")
PREFIX = "cluster-kit"
"""The prefix of the sockets' names, which all users of this host share."""


class Locked(Exception):
    """Another process holds the lock; `about` is its description of itself, "" if not yet
    written."""

    def __init__(self, about: str) -> None:
        super().__init__(about)
        self.about = about


@contextlib.contextmanager
def lock(path: Path, about: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold a lock in the `with` block, by a file that exists only during the block.

    The lock works between all users who can write into the directory. The file of a killed process
    is taken over.

    Args:
        about: a line for processes that find the lock held.
        wait_s: how long to wait for another process to leave it.
    Raises:
        Locked: another process holds it.
        OSError: the file cannot be created.
    """
    file = _waited_for(path, wait_s)
    try:
        with contextlib.suppress(OSError):  # on a full disk the lock works without its text
            os.ftruncate(file, 0)
            os.pwrite(file, f"{about}\n".encode(), 0)
        yield
    finally:
        with contextlib.suppress(OSError):  # this user may not write into the directory
            path.unlink()
        os.close(file)


def own_directory() -> Path:
    """A directory of this host that only this user can read or write, created if necessary.

    Returns the first of these that qualifies: /run/user/UID, $XDG_RUNTIME_DIR,
    /tmp/cluster-kit-UID, and, if another user has taken that name, a directory below the home
    directory.

    Raises:
        OSError: none of them can be used.
    """
    user = os.geteuid()
    if _is_own(directory := RUNTIME / str(user)):
        return directory
    if (named := os.environ.get("XDG_RUNTIME_DIR")) and _is_own(directory := Path(named)):
        return directory
    host = f"locks-{socket.gethostname()}"  # several machines may share a home directory
    for directory in (
        SHARED / f"cluster-kit-{user}",
        Path.home() / ".cache" / "cluster-kit" / host,
    ):
        with contextlib.suppress(OSError, RuntimeError):
            directory.parent.mkdir(parents=True, exist_ok=True)
            directory.mkdir(mode=0o700, exist_ok=True)
        if _is_own(directory):
            return directory
    raise PermissionError(13, "it is not a directory of your own, mode 0700", str(directory))


def _is_own(path: Path) -> bool:
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        about = os.fstat(directory)
    finally:
        os.close(directory)
    return about.st_uid == os.geteuid() and not about.st_mode & 0o077


@contextlib.contextmanager
def between_users(
    name: str, trusts: Callable[[int], bool], wait_s: float = 0.0, prefix: str = ""
) -> Iterator[None]:
    """Hold a name in the `with` block; no other trusted user can hold it meanwhile.

    If an untrusted user has taken the name, the block runs without the lock, so that such a user
    cannot stop others from working. Systems other than Linux have no such sockets: the block then
    runs without the lock, too.

    Args:
        trusts: whether a user (uid) may hold such names.
        wait_s: how long to wait for another process to leave it.
        prefix: the prefix of the name; "" means PREFIX.
    Raises:
        Locked: a process of this user, or of one that is trusted, holds it.
    """
    until = time.monotonic() + wait_s
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as held,
        contextlib.ExitStack() as released,
    ):
        while sys.platform == "linux":
            try:
                held.bind(_address(name, prefix))
                held.listen(socket.SOMAXCONN)
                released.callback(_answer(held))
                break
            except OSError:
                if not (other := holder(name, trusts, prefix)):
                    break
                if time.monotonic() >= until:
                    raise Locked(other) from None
            time.sleep(POLL_S)
        yield


def _answer(held: socket.socket) -> Callable[[], None]:
    """Accept connections that ask for this socket's owner; return a function that stops that.

    Connections that nobody accepts would fill the socket's queue, and later ones would find no
    owner.
    """
    released = threading.Event()

    def answer() -> None:
        while not released.is_set():
            try:
                held.accept()[0].close()
            except OSError:  # shut down, or too many files are open
                released.wait(POLL_S)

    def release() -> None:
        released.set()
        held.shutdown(socket.SHUT_RDWR)
        answering.join()

    answering = threading.Thread(target=answer, name="lock", daemon=True)
    answering.start()
    return release


def holder(name: str, trusts: Callable[[int], bool], prefix: str = "") -> str:
    """The process that holds a name, with its user; "" if no trusted process does."""
    if sys.platform != "linux":
        return ""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as asking:
        # In the kernel: Python's timeout refuses at once if the queue is full.
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", ASK_S, 0))
        try:
            asking.connect(_address(name, prefix))
            credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        except OSError:  # nobody holds it, or its holder does not answer
            return ""
    process, user, _group = struct.unpack("3i", credentials)
    if user != os.geteuid() and not trusts(user):
        return ""
    try:
        return f"process {process} of the user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"process {process} of uid {user}"


def _address(name: str, prefix: str) -> str:
    return f"\0cluster-kit-{hashlib.sha256(f'{prefix or PREFIX} {name}'.encode()).hexdigest()[:40]}"


def _waited_for(path: Path, wait_s: float) -> int:
    until = time.monotonic() + wait_s
    while True:
        try:
            return _locked(path)
        except Locked:
            if time.monotonic() >= until:
                raise
        time.sleep(POLL_S)


def _locked(path: Path) -> int:
    """The descriptor of the locked file, after a check that this name still belongs to it."""
    while True:
        file = _open(path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
                return file
        except BlockingIOError:
            about = os.pread(file, 4096, 0).decode(errors="replace").strip()
            os.close(file)
            raise Locked(about) from None
        except FileNotFoundError:
            pass
        os.close(file)  # its holder has just released and removed it


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a file."""
    with contextlib.ExitStack() as opened:
        try:
            file = _opened(path, os.O_RDONLY)
        except OSError:
            return False
        opened.callback(os.close, file)
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _open(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        # Without O_CREAT: Linux refuses that for a file of another user in a shared directory.
        return _opened(path, os.O_RDWR)
    file = _opened(path, os.O_RDWR | os.O_CREAT)
    with contextlib.suppress(PermissionError):  # another user has just created it
        about = path.parent.stat()
        if about.st_mode & stat.S_IWGRP:
            os.fchown(file, -1, about.st_gid)
        os.fchmod(file, _mode(about.st_mode))
    return file


def _mode(directory: int) -> int:
    """The mode of a lock file: only users who may write into its directory can hold it."""
    shared = ((stat.S_IWGRP, 0o060), (stat.S_IWOTH, 0o006))
    return 0o600 | sum(bits for writes, bits in shared if directory & writes)


def _opened(path: Path, flags: int) -> int:
    """The descriptor of a regular file; raises OSError for a link, a FIFO, a device or a socket."""
    file = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(22, "it is not a regular file", str(path))
    return file


@dataclass(frozen=True)
class Locks:
    """The directory of this user's locks, and the prefix of the names that all users share."""

    directory: Callable[[], Path] = own_directory
    prefix: str = ""

    def between_users(
        self, name: str, trusts: Callable[[int], bool], wait_s: float = 0.0
    ) -> AbstractContextManager[None]:
        """See the function of this name."""
        return between_users(name, trusts, wait_s, self.prefix)

    def holder(self, name: str, trusts: Callable[[int], bool]) -> str:
        """See the function of this name."""
        return holder(name, trusts, self.prefix)
