"""A rootless engine: it is detected, tasks can write, and their files belong to the caller."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_kit.image.kit_image import image_tag
from tests.e2e import rootless

pytestmark = [
    pytest.mark.slow,  # Copying the image takes half a minute.
    pytest.mark.skipif(bool(rootless.why_not()), reason=rootless.why_not() or "-"),
]


def test_a_cluster_runs_and_its_results_belong_to_the_caller(elsewhere: Path) -> None:
    with rootless.engine(elsewhere / "rootless") as engine:
        python = engine.python()
        if not python:
            pytest.skip("no Python 3.11 with the kit's packages that another user may run")
        engine.load(image_tag("cpu"))
        kit = (python, "-m", "cluster_kit")
        told = engine.run(*kit, "doctor")
        assert "rootless: tasks run as root in their containers" in told.stdout + told.stderr
        done = engine.run(*kit, "up", "smoke")
        assert done.returncode == 0, done.stdout + done.stderr
        latest = engine.folder / "ws" / "runs" / "smoke" / "latest"
        assert json.loads((latest / "outcome.json").read_text())["success"]
        assert {path.owner() for path in latest.rglob("*")} == {engine.user}
        limited = engine.run(*kit, "up", "smoke", "--set", "role.worker.cpus=0.5")
        assert limited.returncode == 3 and "worker-0: cpus" in limited.stderr
        engine.run("docker", "image", "rm", "--force", image_tag("cpu"))
