"""Build time: remove what a container never uses, and compile the rest to byte code.

    slim.py packages VENV     the virtual environment with TensorFlow in it
    slim.py root              the running root file system: a Debian, or python:slim

Byte code is part of the image because the root file system is read-only when it runs: without it
every new container would spend three seconds on compiling TensorFlow's Python again. It is marked
as unchecked, since nothing in an image changes under it.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import shutil
import stat
import struct
import sys
import sysconfig
from pathlib import Path

# Relative to site-packages. `tests` only of these packages: directories called `test` inside
# TensorFlow are part of its API.
PACKAGE_PARTS = (
    "pip",
    "pip-*.dist-info",
    "setuptools*",
    "pkg_resources",
    "_distutils_hack",
    "distutils-precedence.pth",
    "tensorflow/include",
    "numpy/**/tests",
    "h5py/tests",
    "opt_einsum/tests",
    "keras/src/**/*_test.py",
    "tf_keras/src/tests",
    "nvidia/*/include",
    "nvidia/**/*.a",
)
# Relative to /.
ROOT_PARTS = (
    "etc/apt",
    "etc/*-",
    "usr/bin/apt*",
    "usr/bin/dpkg*",
    "usr/bin/perl*",
    "usr/lib/apt",
    "usr/lib/dpkg",
    "usr/lib/*-linux-gnu/gconv",
    "usr/lib/*-linux-gnu/libapt-*",
    "usr/lib/*-linux-gnu/libperl.*",
    "usr/lib/*-linux-gnu/perl*",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/perl*",
    "usr/share/python-wheels",
    "usr/share/zoneinfo",
    "usr/local/lib/python3*/site-packages",
    "var/cache/*",
    "var/lib/apt",
    "var/lib/dpkg/info",
    "var/log/*",
)
STDLIB_PARTS = ("ensurepip", "idlelib", "lib2to3", "turtledemo", "tkinter", "test", "config-*")
STRIP_FROM_BYTES = 1_000_000


def slim_packages(venv: Path) -> None:
    site = next((venv / "lib").glob("python3*")) / "site-packages"
    remove(site, PACKAGE_PARTS)
    for path in sorted(site.rglob("*")):
        # NVIDIA's own libraries come stripped, and how device code is found in them is not ours.
        theirs = path.is_relative_to(site / "nvidia")
        if path.is_file() and not theirs and path.stat().st_size >= STRIP_FROM_BYTES:
            drop_symbol_table(path)
    link_cusolver(site)
    compile_all(site)


def link_cusolver(site: Path) -> None:
    """Put cuSOLVER beside cuBLAS, where TensorFlow finds it.

    libtensorflow_framework.so.2 of 2.21 loads both by their names, but its RUNPATH lists the
    directories of all CUDA packages except cuSOLVER's: TensorFlow then uses no GPU at all.
    """
    for library in sorted((site / "nvidia" / "cusolver" / "lib").glob("*.so.*")):
        beside = site / "nvidia" / "cublas" / "lib" / library.name
        if not beside.exists():
            beside.symlink_to(Path("../../cusolver/lib") / library.name)


def slim_root() -> None:
    stdlib = Path(sysconfig.get_path("stdlib"))
    remove(stdlib, STDLIB_PARTS)
    compile_all(stdlib)
    remove(Path("/"), ROOT_PARTS)
    drop_set_ids(Path("/"))
    keep_licences(Path("/usr/share/doc"))


def keep_licences(documents: Path) -> None:
    """Remove all documents but the packages' copyright files, and links to their folders."""
    for path in sorted(documents.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.name != "copyright" and not (path.is_symlink() and path.parent == documents):
            path.unlink()


def remove(top: Path, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        for path in list(top.glob(pattern)):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def drop_set_ids(top: Path) -> None:
    """Take from the programs of this file system the right to run as their owner or group."""
    for folder, names, files in os.walk(top):
        names[:] = [name for name in names if not Path(folder, name).is_mount()]
        for name in files:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                path.chmod(stat.S_IMODE(mode) & 0o777)


def compile_all(top: Path) -> None:
    compileall.compile_dir(
        top,
        quiet=2,  # some packages ship templates that are not Python
        workers=0,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def drop_symbol_table(path: Path) -> int:
    """What `strip` does to a library or program, but with no tool chain to install for it.

    The linker puts the symbol table behind everything that is loaded. When that is so, the file
    ends after its last segment and the section headers, which no loader reads, are forgotten.
    Libraries that were patched later have segments behind it: they gain little or nothing.

    Returns the number of bytes saved.
    """
    with path.open("r+b") as file:
        header = file.read(64)
        if header[:6] != b"\x7fELF\x02\x01":  # 64-bit, little-endian; other files stay as they are
            return 0
        (segments_at,) = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        file.seek(segments_at)
        segments = [struct.unpack_from("<IIQQQQ", file.read(size)) for _ in range(count)]
        end = max(offset + in_file for _, _, offset, _, _, in_file in segments)
        before = file.seek(0, 2)
        if end >= before:
            return 0
        file.truncate(end)
        file.seek(40)
        file.write(struct.pack("<Q", 0))  # e_shoff
        file.seek(58)
        file.write(struct.pack("<HHH", 0, 0, 0))  # e_shentsize, e_shnum, e_shstrndx
    return before - end


if __name__ == "__main__":
    if sys.argv[1] == "root":
        slim_root()
    else:
        slim_packages(Path(sys.argv[2]))
