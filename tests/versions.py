"""Runs three systems on three versions of TensorFlow: `make test-versions`, only on request.

    python3 -m tests.versions [VERSION [MANIFEST]]

Each cell is a real run; its figures are written to build/versions/versions.json at once, and
replace those of the same cell. To update docs/your-image.md, copy that file to docs/, and run `make
docs`. An image of about 1 GB is built for each version.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.make import ROOT

VERSIONS = ("2.15", "2.18", "2.21")
"""The oldest version that the kit installs, one in the middle, and the newest."""
MANIFESTS = ("smoke", "linear-regression", "all-reduce")
FOLDER = ROOT / "build" / "versions"
RESULTS = FOLDER / "versions.json"
SHOWN = ("test_accuracy", "w_error")
BOUND_S = 900
FALLBACK = "no native server"


def main(asked: list[str]) -> int:
    """Run the cells; returns 1 if one of them did not succeed."""
    versions = asked[:1] or VERSIONS
    manifests = asked[1:] or MANIFESTS
    (FOLDER / "compose").mkdir(parents=True, exist_ok=True)
    failed = False
    for version in versions:
        for name in manifests:
            facts = run(version, name)
            keep(facts)
            print(json.dumps(facts), flush=True)
            failed |= not facts["success"]
    return int(failed)


def run(version: str, name: str) -> dict[str, Any]:
    """Returns the figures of one run, and the evidence of its TensorFlow version."""
    cluster = f"v{version.replace('.', '-')}-{name}"
    command = (
        *(sys.executable, "-m", "cluster_kit", "up", str(ROOT / "compose" / f"{name}.toml")),
        *("--name", cluster, "--set", f'tensorflow="{version}"', "--json"),
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=BOUND_S
    )
    latest = FOLDER / "runs" / cluster / "latest"
    if not (latest / "outcome.json").is_file():
        print(done.stderr, file=sys.stderr)
        return cell(version, name, {}, "", "")
    logs = "".join(path.read_text() for path in (latest / "logs").glob("*.log"))
    return cell(version, name, json.loads((latest / "outcome.json").read_text()), logs, locked())


def cell(
    version: str, name: str, outcome: Mapping[str, Any], logs: str, locks: str
) -> dict[str, Any]:
    """Returns one run's figures, from its outcome, the logs of its tasks and the text of the lock
    files."""
    metrics = outcome.get("metrics", {})
    pins = dict(re.findall(r"^(tensorflow-cpu|keras|tf-keras)==(\S+)", of(locks, version), re.M))
    return {
        "version": version,
        "manifest": name,
        "success": bool(outcome.get("success")),
        "seconds": outcome.get("timings_s", {}).get("total"),
        "metrics": {key: metrics[key] for key in SHOWN if key in metrics},
        "tensorflow": pins.get("tensorflow-cpu", ""),
        "keras": pins.get("keras", ""),
        "tf_keras": pins.get("tf-keras", ""),
        "servers": servers(logs),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def servers(logs: str) -> str:
    """Returns how the servers of a run were started; "" if it had none."""
    if "TensorFlow server ready" not in logs:
        return ""
    return "python" if FALLBACK in logs else "native"


def locked() -> str:
    """Returns all lock files, each after a line with its version."""
    files = sorted((FOLDER / "compose").glob("tensorflow-*-cpu-*.lock"))
    return "".join(f"@{file.name.split('-')[1]}\n{file.read_text()}" for file in files)


def of(locks: str, version: str) -> str:
    """Returns the part of `locked()` for a version."""
    return locks.partition(f"@{version}\n")[2].partition("\n@")[0]


def keep(facts: Mapping[str, Any], file: Path = RESULTS) -> None:
    """Write a cell's figures into the file, in place of older ones."""
    old = json.loads(file.read_text()) if file.is_file() else []
    key = (facts["version"], facts["manifest"])
    others = [one for one in old if (one["version"], one["manifest"]) != key]
    rows = sorted([*others, facts], key=lambda one: (one["version"], one["manifest"]))
    file.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
