"""Searches for known vulnerabilities of the packages in the image: a part of `make check`.

pip-audit asks a service on the network. If no service answers, or it does not know the packages, a
message says so, and the check does not fail.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from cluster_kit.image.kit_image import SOURCE

TIMEOUT_S = 60
FILES = ("locked-cpu.txt", "locked-gpu.txt")
ACCEPTED: dict[str, str] = {}
"""Vulnerabilities that do not concern the image: id and reason."""
Run = Callable[..., subprocess.CompletedProcess[str]]


def main(run: Run = subprocess.run) -> int:
    """Audit each file; returns 1 if a package has a known vulnerability that is not accepted, else
    0."""
    worst = 0
    for name in FILES:
        answer, why_not = _asked(name, run)
        found = _vulnerable(answer)
        if answer and not any("vulns" in package for package in answer):
            why_not = "the service knows none of the packages"
        if why_not:
            print(f"{name}: not audited: {why_not}", file=sys.stderr)
        for line in found:
            print(f"{name}: {line}", file=sys.stderr)
        worst = max(worst, int(bool(found)))
    return worst


def _asked(name: str, run: Run) -> tuple[list[dict[str, Any]], str]:
    """Returns what pip-audit reports for each package of a file, or the reason why it reports
    nothing."""
    command = (
        *(sys.executable, "-m", "pip_audit", "--requirement", str(SOURCE / "recipe" / name)),
        *("--no-deps", "--disable-pip", "--format=json", "--progress-spinner=off"),
    )
    try:
        done = run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return [], f"no service has answered within {TIMEOUT_S} s"
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        lines = done.stderr.strip().splitlines() or ["pip-audit said nothing"]
        return [], f"no service answers ({type_of(lines[-1])})"
    return packages, ""


def type_of(line: str) -> str:
    """Returns the beginning of an error, without addresses."""
    return line.partition("http")[0].strip()[:100]


def _vulnerable(packages: list[dict[str, Any]]) -> list[str]:
    return [
        f"{package['name']} {package['version']}: {found['id']}, mended in "
        + (", ".join(found.get("fix_versions", [])) or "no version yet")
        for package in packages
        for found in package.get("vulns", [])
        if found["id"] not in ACCEPTED and not ACCEPTED.keys() & set(found.get("aliases", []))
    ]


if __name__ == "__main__":
    sys.exit(main())
