"""Makes a directory of another container full for a while: nothing can be written there any more.

In the mount namespace of process 1 a tiny file system is mounted over the directory, and filled:
existing files can be read, and every write fails with ENOSPC. The mount is invisible elsewhere, and
disappears when that container ends. Ends after its time, or at SIGTERM.

Prints "ready" as soon as it is in force, or why it cannot be. Its argument is a JSON object:
`directory`, `seconds` (null for good: the program then ends at once, and leaves the directory
full).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

CLONE_NEWNS = 0x20000
MNT_DETACH = 2
LAYER = Path("/tmp/.cluster-kit-full")
FILE_SYSTEM = "size=64k,nr_inodes=64"
LOOK_S = 0.2
LIBC = ctypes.CDLL(None, use_errno=True)


def done(result: int, what: str) -> None:
    """Raise OSError if a call of the C library has failed."""
    if result:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(kind: str, where: Path, options: str) -> None:
    called = LIBC.mount(b"drill", bytes(where), kind.encode(), 0, options.encode())
    done(called, f"mounting {kind} on {where}")


def enter() -> None:
    """Enter the mount namespace of process 1."""
    namespace = os.open("/proc/1/ns/mnt", os.O_RDONLY)
    done(LIBC.setns(namespace, CLONE_NEWNS), "entering the container's mount namespace")


def fill(directory: Path) -> None:
    """Mount the tiny file system over the directory, and use up all its bytes and inodes."""
    LAYER.mkdir(mode=0o700)
    try:
        mount("tmpfs", LAYER, FILE_SYSTEM)
        upper, work = LAYER / "upper", LAYER / "work"
        upper.mkdir()
        work.mkdir()
        real = directory.stat()
        os.chown(upper, real.st_uid, real.st_gid)
        upper.chmod(real.st_mode & 0o7777)
        layers = f"lowerdir={directory},upperdir={upper},workdir={work}"
        mount("overlay", directory, layers)
        use_up(LAYER)
    finally:
        LIBC.umount2(bytes(LAYER), MNT_DETACH)  # the overlay keeps the directory
        LAYER.rmdir()


def use_up(where: Path) -> None:
    """Use up every byte, then every inode."""
    with contextlib.suppress(OSError), (where / "bytes").open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    for count in range(1 << 16):
        try:
            (where / f"inode-{count}").touch()
        except OSError as problem:
            if problem.errno == errno.ENOSPC:
                return
            raise
    raise OSError(errno.EINVAL, f"{where} does not become full")


def main(options: dict[str, Any]) -> None:
    directory, seconds = Path(options["directory"]), options["seconds"]
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    enter()
    fill(directory)
    print("ready", flush=True)
    if seconds is None:
        return
    end = time.monotonic() + seconds
    while not stopped and time.monotonic() < end:
        time.sleep(LOOK_S)
    done(LIBC.umount2(bytes(directory), MNT_DETACH), f"uncovering {directory}")


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except OSError as problem:
        print(problem.strerror or problem, flush=True)
