"""Make a folder with installers of packages, for `PYTHONPATH=FOLDER python -m pip`.

    installers.py FOLDER [LOCKED]

One is the pip that this Python brings along: `python -m venv` would install it, which takes 6 s.
LOCKED names others with their hashes, such as uv. Without them install.py uses pip. What was in
FOLDER before is removed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.util import find_spec
from pathlib import Path


def bundled_wheel() -> Path | None:
    """The wheel from which `ensurepip` installs pip; None if this Python has none."""
    ensurepip = find_spec("ensurepip")
    places = ensurepip.submodule_search_locations or [] if ensurepip else []
    # Distributions keep it in a folder of their own, which they say in this variable.
    folders = [sysconfig.get_config_var("WHEEL_PKG_DIR"), *(f"{at}/_bundled" for at in places)]
    wheels = [wheel for folder in folders if folder for wheel in Path(folder).glob("pip-*.whl")]
    return wheels[0] if wheels else None


def main(folder: Path, locked: Path | None = None) -> None:
    """Ends the process with a message if there is no pip; says it if another cannot be had."""
    wheel = bundled_wheel()
    if wheel is None:
        sys.exit("this Python brings no pip along: install ensurepip (Debian: python3-venv)")
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    if locked is None:
        return
    command = (
        *(sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"),
        *("--no-compile", "--no-deps", "--require-hashes", "--root-user-action=ignore"),
        *(f"--target={folder}", f"--requirement={locked}"),
    )
    fetched = subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": str(folder)})
    if fetched.returncode != 0:
        print(
            f"cannot install the packages of {locked.name}: pip takes their place", file=sys.stderr
        )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
