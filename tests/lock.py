"""Writes versions and hashes of the packages in the image and on the host: `make lock`.

The hashes are of every file of a pinned version, so that a build accepts it on any machine and from
any mirror, and refuses every other file. Markers select what differs between processors and Python
versions. The host's versions are the newest that pyproject.toml allows: they are for a clone's
.venv, in development and CI. Users of the package get the ranges of pyproject.toml.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from cluster_kit.image.kit_image import SOURCE

RECIPE = SOURCE / "recipe"
ROOT = Path(__file__).resolve().parent.parent
LOCKED = ("cpu", "digits", "gpu", "uv")
HOST = {"requirements.lock": (), "requirements-dev.lock": ("--extra=dev",)}
"""The packages of a clone's .venv, and the further ones that tests and checks need."""
HEADER = "# `make lock` wrote this from {}. Do not edit.\n"


def main() -> int:
    """Write all files, or with `--check` report which of the host's are stale; returns the exit
    code."""
    if "--check" in sys.argv[1:]:
        stale = stale_files()
        for name in stale:
            print(f"{name} is stale: run `make lock`", file=sys.stderr)
        return int(bool(stale))
    for part in LOCKED:
        asked = ("--no-deps", f"requirements-{part}.txt")
        text = _locked(RECIPE, *asked)
        header = HEADER.format(f"requirements-{part}.txt")
        (RECIPE / f"locked-{part}.txt").write_text(header + text)
    for name, extra in HOST.items():
        asked = (*extra, "--group=build", f"--output-file={name}", "pyproject.toml")
        _locked(ROOT, *asked)
        (ROOT / name).write_text(_host_header() + (ROOT / name).read_text())
    return 0


def stale_files() -> list[str]:
    """Returns the host's files that were made from other requirements than pyproject.toml has
    now."""
    header = _host_header()
    files = [(ROOT / name, name) for name in HOST]
    return [name for file, name in files if not file.read_text().startswith(header)]


def _host_header() -> str:
    read = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = read["project"]
    keys = ("dependencies", "optional-dependencies", "requires-python")
    asked = json.dumps([read["build-system"], *(project[key] for key in keys)], sort_keys=True)
    digest = hashlib.sha256(asked.encode()).hexdigest()[:16]
    return HEADER.format("pyproject.toml") + f"# Requirements: {digest}\n"


def _locked(folder: Path, *asked: str) -> str:
    """Returns uv's result, with hashes; raises CalledProcessError, after uv has printed the
    reason."""
    index = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
    ).stdout.strip()
    environment = {**os.environ, **({"UV_DEFAULT_INDEX": index} if index else {})}
    command = (
        *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--generate-hashes"),
        *("--no-header", "--no-annotate", "--python-version=3.11", "--universal", *asked),
    )
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


if __name__ == "__main__":
    sys.exit(main())
