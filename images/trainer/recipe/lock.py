"""Build time: resolve what the image with another TensorFlow installs, with hashes.

lock.py VERSION VARIANT TARGET [PIP-OPTION…]

tf_keras is resolved without what it depends on: it would bring `tensorflow` beside
`tensorflow-cpu`.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from pathlib import Path

PROGRAMS = ("grpcio", "pillow", "pycocotools", "pydantic", "pyroute2", "tensorboard", "tf-slim")
"""What the trainer and old programs import besides, as requirements-common.txt has it."""
LEFT_OUT = {"libclang", "pip", "setuptools", "wheel"}
"""Declared, but imported by nothing at run time."""
NIGHTLY = "nightly"


def main(version: str, variant: str, target: Path, options: list[str]) -> int:
    print(f"resolving for Python {sys.version_info[0]}.{sys.version_info[1]}", file=sys.stderr)
    framework, keras = names(version, variant)
    pins = resolve([framework, *PROGRAMS], options)
    pins |= resolve([keras, "packaging"], [*options, "--no-deps"])
    text = [f"# TensorFlow {version} and what it needs. Remove this file to resolve it anew.\n"]
    for name, (release, digest) in sorted(pins.items()):
        if name not in LEFT_OUT:
            text.append(f"{name}=={release} \\\n    --hash={digest}\n")
    target.write_text("".join(text))
    return 0


def names(version: str, variant: str) -> tuple[str, str]:
    """The requirements for TensorFlow and for tf_keras; 2.16 stands for its newest release.

    Packages without GPUs have a name of their own for x86_64 alone.
    """
    slim = "-cpu" if platform.machine() in ("x86_64", "AMD64") else ""
    if version == NIGHTLY:
        named = {"cpu": f"tf-nightly{slim}", "gpu": "tf-nightly[and-cuda]"}
        return named[variant], "tf-keras-nightly"
    parts = version.split(".")
    exact = version if len(parts) > 2 else f"{version}.*"
    package = {"cpu": f"tensorflow{slim}", "gpu": "tensorflow[and-cuda]"}[variant]
    return f"{package}=={exact}", f"tf-keras=={parts[0]}.{parts[1]}.*"


def resolve(requirements: list[str], options: list[str]) -> dict[str, tuple[str, str]]:
    """(version, hash) of each package, by name. Ends the process with pip's code if pip fails."""
    report = Path("/tmp/report.json")
    command = (
        *(sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"),
        *("--only-binary=:all:", "--disable-pip-version-check", "--progress-bar=off"),
        *(f"--report={report}", *options, *requirements),
    )
    if code := subprocess.run(command, check=False).returncode:
        sys.exit(code)
    pins = {}
    for package in json.loads(report.read_text())["install"]:
        name = re.sub(r"[-_.]+", "-", package["metadata"]["name"]).lower()
        digest = package["download_info"]["archive_info"]["hashes"]["sha256"]
        pins[name] = (package["metadata"]["version"], f"sha256:{digest}")
    return pins


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:]))
