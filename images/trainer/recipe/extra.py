"""Build time: install a user's requirements beside what the image has, and never instead of it.

extra.py REQUIREMENTS [PIP-OPTION…]

Every package of the image is a constraint. TensorFlow is called `tensorflow-cpu` on x86_64; what
asks for `tensorflow` finds it under that name as well, and brings no second one.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

NOT_OURS = {"pip", "setuptools", "wheel"}
SITE = Path(sysconfig.get_path("purelib"))


def main(requirements: str, options: list[str]) -> int:
    have = {
        re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower(): distribution.version
        for distribution in metadata.distributions(path=[str(SITE)])
    }
    if "tensorflow" not in have and "tensorflow-cpu" in have:
        call_it("tensorflow", have["tensorflow-cpu"])
        have["tensorflow"] = have["tensorflow-cpu"]
    constraints = Path("/tmp/the-image-has.txt")
    pins = sorted(f"{name}=={version}" for name, version in have.items() if name not in NOT_OURS)
    constraints.write_text("\n".join([*pins, ""]))
    pip = (sys.executable, "-m", "pip", "install", *options, "--disable-pip-version-check")
    how = (
        "--root-user-action=ignore",
        "--progress-bar=off",
        "--prefer-binary",
        "--no-warn-script-location",
    )
    files = ("--constraint", str(constraints), "--requirement", requirements)
    return subprocess.run((*pip, *how, *files), check=False).returncode


def call_it(name: str, version: str) -> None:
    """Say that a package is there, in the words that pip reads."""
    folder = SITE / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "INSTALLER").write_text("cluster-kit\n")
    (folder / "RECORD").write_text("")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
