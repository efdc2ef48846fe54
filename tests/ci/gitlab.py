"""Runs the script of a job of GitLab CI as its runner does: in a POSIX shell that ends at an error.

`apk`, which installs packages into the job's image, is replaced by a double; there is no other
image here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.ci.steps import HIDDEN, TIMEOUT_S


def job(checkout: Path, name: str, variables: Mapping[str, str]) -> tuple[int, str]:
    """Returns exit code and output of a job in .gitlab-ci.yml, or in a file that it includes."""
    pipeline = yaml.safe_load((checkout / ".gitlab-ci.yml").read_text(encoding="utf-8"))
    for included in pipeline.pop("include", []):
        pipeline |= yaml.safe_load((checkout / included["local"]).read_text(encoding="utf-8"))
    found = pipeline[name]
    lines = [*found.get("before_script", ()), *found["script"]]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(HIDDEN)}
    own = {
        key: str(value).replace("$CI_JOB_ID", "4711")
        for key, value in found.get("variables", {}).items()
    }
    done = subprocess.run(
        ["sh", "-ec", "\n".join(lines)],
        cwd=checkout, env={**inherited, **own, "CI_PROJECT_DIR": str(checkout), **variables},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout
