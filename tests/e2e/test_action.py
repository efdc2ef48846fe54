"""The GitHub Action, step by step in a clean checkout, in a successful run and in one that never
starts.

Its exit code, outputs and summary are correct. Actions of other projects (checkout, cache, upload)
are replaced by doubles that record their inputs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
import yaml

from tests.ci.steps import Runner
from tests.e2e.others import Others, named
from tests.kit import mine, remove
from tests.make import ROOT

pytestmark = [pytest.mark.xdist_group("action"), pytest.mark.more]
NAME = f"e2e-action-{os.getpid()}"


@pytest.fixture
def others() -> Others:
    return Others()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns exactly the files that a commit of this working tree would have."""
    folder = tmp_path_factory.mktemp("repo")
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    found = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, found.split("\0")):
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    return folder


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the runner's folder for temporary files, in which the kit is installed once."""
    return tmp_path_factory.mktemp("temp")


@pytest.fixture
def runner(
    checkout: Path, machine: Path, others: Others, client: docker.DockerClient
) -> Iterator[Runner]:
    yield Runner(checkout, machine, others.doubles(), {"PIP_NO_COMPILE": "1"})
    remove(client, NAME)


def with_inputs(checkout: Path, **inputs: str) -> None:
    """Give the action's step of the repository's own workflow other inputs."""
    path = checkout / ".github" / "workflows" / "smoke.yml"
    read = yaml.safe_load(path.read_text())
    (step,) = (s for s in read["jobs"]["smoke"]["steps"] if s["uses"] == "./")
    step["with"] |= inputs
    path.write_text(yaml.safe_dump(read))


def test_this_repositorys_workflow_trains_and_keeps_its_evidence(
    runner: Runner, others: Others, client: docker.DockerClient
) -> None:
    with_inputs(runner.checkout, set=f'name="{NAME}"\n\nretries=1\n')
    assert runner.workflow(".github/workflows/smoke.yml", "smoke"), runner.said
    outputs = named(runner, "One of each role, on the CPU").outputs
    run = Path(outputs["run"])
    assert run.parent == runner.checkout / "runs" / NAME
    assert (outputs["success"], outputs["reason"], outputs["exit-code"]) == (
        "true",
        "finished",
        "0",
    )
    assert outputs["blame"] == ""
    outcome = json.loads(Path(outputs["outcome"]).read_text())
    assert runner.summary.startswith(f"## ✅ {NAME} succeeded after ")
    assert f"| test accuracy | {outcome['metrics']['test_accuracy']:.4g} |" in runner.summary
    assert runner.summary.count("```mermaid") == 2
    for task in outcome["tasks"]:
        assert f"| {task['name']} | {task['ip']} |" in runner.summary
    kept = others.given["actions/upload-artifact"]
    assert kept["path"].splitlines()[0] == str(run) and kept["retention-days"] == "14"
    assert kept["name"] == outputs["evidence"] and outputs["evidence"].startswith("cluster-kit-")
    assert (run / "summary.md").read_text() == runner.summary
    # The image is already here.
    assert named(runner, "Look for the image in the cache").outcome == "skipped"
    assert mine(client, NAME) == ([], [])


def test_an_invalid_manifest_fails_with_a_summary_and_evidence(
    runner: Runner, others: Others
) -> None:
    given = {"manifest": "smoke", "workers": "0", "name": NAME, "args": "--epochs 2"}
    well, outputs = runner.action(runner.checkout, given)
    assert not well
    assert (outputs["success"], outputs["reason"], outputs["exit-code"]) == (
        "false",
        "manifest",
        "2",
    )
    assert (outputs["run"], outputs["outcome"]) == ("", "")
    assert runner.summary.startswith("## ❌ The cluster did not start\n\n```text\n")
    assert "--workers" in runner.summary and "| exit code | 2 |" in runner.summary
    verdict = named(runner, "Give the verdict")
    assert verdict.outcome == "failure" and "manifest (exit code 2)" in verdict.said
    folder = Path(others.given["actions/upload-artifact"]["path"].strip())
    assert sorted(path.name for path in folder.iterdir()) == ["summary.md", "up.json"]
    installed = named(runner, "Install cluster-kit")
    assert installed.outcome == "success" and "cluster-kit/trainer:cpu-" in installed.said


def test_the_image_is_saved_once_and_loaded_after_that(
    runner: Runner, others: Others, client: docker.DockerClient
) -> None:
    tag = f"cluster-kit-test/action:{os.getpid()}"
    piped = subprocess.run(["docker", "import", "-", tag], input=bytes(10240), check=True)
    assert piped.returncode == 0
    identity = client.images.get(tag).id
    image = {"outcome": "success", "outputs": {"tag": tag, "present": "false"}}
    missed = {"outcome": "success", "outputs": others.answers["actions/cache/restore"]}
    try:
        saving = ("Save the image", "Keep the image in the cache")
        assert runner.some(ROOT, saving, inputs={}, steps={"image": image, "cache": missed})
        tar = Path(others.given["actions/cache/save"]["path"])
        assert tar.stat().st_size > 0 and others.given["actions/cache/save"]["key"] == "the-key"
        client.images.remove(tag)
        looking = ("Look for the image in the cache", "Load the image", *saving)
        others.answers["actions/cache/restore"] = {"cache-hit": "true"}
        others.given.clear()
        steps, inputs = {"image": image}, {"cache-image": "true"}
        assert runner.some(ROOT, looking, inputs=inputs, steps=steps)
        assert others.given["actions/cache/restore"]["path"] == str(tar)
        assert others.given["actions/cache/restore"]["key"].endswith(tag)
        assert client.images.get(tag).id == identity
        assert "actions/cache/save" not in others.given and not tar.exists()
    finally:
        subprocess.run(["docker", "image", "rm", tag], capture_output=True)


def test_a_broken_file_in_the_cache_gives_only_a_warning(
    runner: Runner, machine: Path, others: Others
) -> None:
    (machine / "cluster-kit-image.tar").write_text("no image")
    hit = {"outcome": "success", "outputs": {"cache-hit": "true"}}
    assert runner.some(ROOT, ["Load the image"], inputs={}, steps={"cache": hit})
    assert "::warning" in runner.said


def test_a_copy_of_the_action_without_the_kit_reports_it(runner: Runner, tmp_path: Path) -> None:
    shutil.copy(ROOT / "action.yml", tmp_path)
    well, outputs = runner.action(tmp_path, {})
    assert not well and outputs["success"] == ""
    assert "set its input `kit`" in runner.said
