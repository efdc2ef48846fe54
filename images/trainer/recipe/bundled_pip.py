"""Unpack the pip that a Python brings along, for `PYTHONPATH=FOLDER python -m pip`.

    bundled_pip.py FOLDER

`python -m venv` would install it, which takes 6 s.
"""

from __future__ import annotations

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


def main(folder: Path) -> None:
    """Ends the process with a message if there is no pip."""
    wheel = bundled_wheel()
    if wheel is None:
        sys.exit("this Python brings no pip along: install ensurepip (Debian: python3-venv)")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
