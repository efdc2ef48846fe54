"""What a run was made of, kept with it: the manifest as it was run, and the user's program."""

from __future__ import annotations

import hashlib
import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path

from cluster_kit.manifest.load import Loaded
from cluster_kit.util.masking import Mask
from cluster_kit.util.toml_text import document
from cluster_kit.workspace import RunDirectory, write_atomically

MOST_BYTES = 1_000_000
"""Of all copies of a program's files together; of the rest only the hashes are kept."""


def keep_manifest(run: RunDirectory, loaded: Loaded, command: str, mask: Mask) -> None:
    """Write the manifest as it is run: the file's text if nothing overrides it.

    Args:
        command: what renders the manifest with its overrides, for a comment.
    Raises:
        OSError: it cannot be written, or the manifest's file is gone.
    """
    text = loaded.path.read_text(encoding="utf-8-sig", errors="replace")
    try:
        unchanged = tomllib.loads(text) == loaded.values
    except (ValueError, RecursionError):  # it was edited meanwhile
        unchanged = False
    if not unchanged:
        text = f"# {command}\n{document(loaded.values)}"
    write_atomically(run.manifest, mask(text))


def keep_program(run: RunDirectory, files: Sequence[Path], mask: Mask) -> dict[str, str]:
    """Copy a program's files into the run, and return the SHA-256 of each by its name.

    Names are relative to the first file's directory. Files that are not text are not copied.

    Raises:
        OSError: the copies cannot be written.
    """
    if run.program.is_dir():
        shutil.rmtree(run.program)  # a resumed run has that of the run before
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
    return hashes
