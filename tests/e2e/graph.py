"""Puts images of this machine's engine into the data of another engine, which has not started yet.

The layers of images are read-only: the other engine gets them as mounts, which takes no time and no
disk. `docker save | docker load` takes a minute for each engine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

DRIVER = "overlay2"
MOUNT = """
for own in "$1/data" "$1/data/overlay2"; do
  mount --bind "$own" "$own"
  mount --make-private "$own"
done
mount --make-shared "$1/data"
while read -r from to; do mount --bind -o ro "$from" "$to"; done < "$1/mounts"
if [ -d /run/containerd ]; then mount -t tmpfs none /run/containerd; fi
shift
"""
"""Shell commands for a mount namespace of the engine's own, whose folder is the first argument.
dockerd mounts its data over itself, without the mounts in it, unless this is done before. A
containerd of the machine does not see these mounts, so this engine starts its own."""


def why_not() -> str:
    """Returns why images cannot be shared in this way; "" if they can."""
    try:
        info = _asked("info", "--format", "{{json .}}")
    except (OSError, subprocess.CalledProcessError):
        return "no Docker engine answers"
    if info.get("Driver") != DRIVER:
        return f"the engine's storage driver is {info.get('Driver')}, not {DRIVER}"
    kept = Path(str(info.get("DockerRootDir", "")), DRIVER)
    return "" if kept.is_dir() else f"the engine's data ({kept}) is not on this machine"


def copy(image: str, data: Path, name: str) -> list[tuple[Path, Path]]:
    """Give an engine that keeps its data in `data` an image of this machine's engine.

    Args:
        name: the image's name there.

    Returns (folder here, folder there) of the mounts that are needed before the engine starts.
    """
    info = _asked("info", "--format", "{{json .}}")
    found = _asked("image", "inspect", "--format", "{{json .}}", image)
    root, number = Path(info["DockerRootDir"]), found["Id"].removeprefix("sha256:")
    ours, theirs = root / "image" / DRIVER, data / "image" / DRIVER
    content = Path("imagedb/content/sha256") / number
    (theirs / content).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(ours / content, theirs / content)
    chain, mounts = "", []
    for layer in found["RootFS"]["Layers"]:
        chain = sha256(f"sha256:{chain} {layer}".encode()).hexdigest() if chain else layer[7:]
        mounts += _layer(chain, root, data)
    names = theirs / "repositories.json"
    known = json.loads(names.read_text()) if names.exists() else {"Repositories": {}}
    repository, _, _ = name.rpartition(":")
    known["Repositories"].setdefault(repository, {})[name] = found["Id"]
    names.write_text(json.dumps(known))
    return mounts


def _layer(chain: str, root: Path, data: Path) -> list[tuple[Path, Path]]:
    kept = Path("image", DRIVER, "layerdb/sha256", chain)
    if (data / kept).exists():
        return []
    shutil.copytree(root / kept, data / kept)
    cache = (root / kept / "cache-id").read_text()
    source, target = root / DRIVER / cache, data / DRIVER / cache
    (target / "diff").mkdir(parents=True)
    (target / "work").mkdir()
    for part in ("link", "lower", "committed"):
        if (source / part).exists():
            shutil.copy2(source / part, target / part)
    (data / DRIVER / "l").mkdir(exist_ok=True)
    (data / DRIVER / "l" / (source / "link").read_text()).symlink_to(f"../{cache}/diff")
    return [(source / "diff", target / "diff")]


def share(images: Mapping[str, str], folder: Path) -> None:
    """Prepare what MOUNT mounts in an engine's folder: images of this machine, by their names
    there."""
    data = folder / "data"
    (data / DRIVER).mkdir(parents=True)
    mounts = [one for there, here in images.items() for one in copy(here, data, there)]
    (folder / "mounts").write_text("".join(f"{ours} {theirs}\n" for ours, theirs in mounts))


def _asked(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
