"""From a plan to containers: disk space, subnet, image, and the errors if one is missing."""

from __future__ import annotations

import pytest
import yaml

from cluster_kit.errors import EngineError, HostError, ManifestError
from tests.fakes.stage import Stage


def test_a_subnet_that_is_used_meanwhile_is_replaced(stage: Stage) -> None:
    stage.docker.takes_subnet = 2
    outcome = stage.up()
    assert outcome.success
    taken = {str(cidr) for _, cidr in stage.engine.subnets.values()}
    assert len(stage.docker.ups) == 3
    assert stage.subnet not in taken
    ips = {task.ip for task in outcome.tasks}
    assert all(ip.rpartition(".")[0] in stage.subnet for ip in ips)
    assert stage.subnet in (stage.directory.path / "compose.yaml").read_text()


def test_a_host_without_a_free_subnet_ends_the_start(stage: Stage) -> None:
    stage.docker.takes_subnet = 9
    with pytest.raises(EngineError, match="subnet is taken"):
        stage.up()
    assert len(stage.docker.ups) == 3
    assert (stage.saved()["reason"], stage.saved()["exit_code"]) == ("engine", 4)
    assert stage.is_clean()


def test_a_fixed_subnet_is_tried_once(stage: Stage) -> None:
    stage.docker.takes_subnet = 1
    with pytest.raises(EngineError, match="subnet is taken"):
        stage.up(subnet="172.30.5.0/24")
    assert len(stage.docker.ups) == 1
    assert stage.is_clean()


def test_a_missing_image_is_built_first(stage: Stage) -> None:
    stage.docker.lacks_image = True
    assert stage.up().success
    assert stage.view.phases[1].startswith("building the shared image cluster-kit/trainer:cpu-")


def test_an_image_that_is_removed_after_the_plan_is_built_again(stage: Stage) -> None:
    stage.docker.loses_image = True
    assert stage.up().success
    assert (len(stage.docker.builds), len(stage.docker.ups)) == (1, 2)
    assert stage.is_clean()


def test_a_users_image_that_was_removed_is_named(stage: Stage) -> None:
    stage.docker.loses_image = True
    with pytest.raises(EngineError, match="No such image") as told:
        stage.up(image="mine:1")
    assert "build or pull the image" in told.value.hint
    assert stage.is_clean()


def test_a_full_disk_of_the_engine_is_reported_with_a_fix(stage: Stage) -> None:
    stage.engine.refuses["ps-0"] = "write /var/lib/docker/x: no space left on device"
    with pytest.raises(EngineError, match="no space left on device") as told:
        stage.up()
    assert "`docker system df`" in told.value.hint and "prune" in told.value.hint
    assert told.value.run == str(stage.directory.path)


def test_an_image_that_cannot_be_built_starts_nothing(stage: Stage) -> None:
    stage.docker.lacks_image = True
    stage.docker.building = (1, ["ERROR: no matching distribution"])
    with pytest.raises(EngineError, match=r"building cluster-kit/trainer:cpu-.* failed") as told:
        stage.up()
    assert told.value.run == ""
    assert stage.docker.ups == []
    assert not stage.ran


@pytest.mark.parametrize("task", ["chief-0", "ps-0", "evaluator-0"])
def test_if_one_container_does_not_start_all_are_removed(stage: Stage, task: str) -> None:
    stage.engine.refuses[task] = "no space left on device"
    with pytest.raises(EngineError, match="no space left on device"):
        stage.up()
    saved = stage.saved()
    assert (saved["success"], saved["reason"], saved["exit_code"]) == (False, "engine", 4)
    assert "no space left on device" in saved["message"]
    assert len(saved["tasks"]) == 5
    assert (stage.directory.logs / "worker-0.log").exists()
    assert stage.is_clean()


def test_an_invalid_manifest_starts_nothing(stage: Stage) -> None:
    with pytest.raises(ManifestError, match="worker"):
        stage.up(worker=0)
    assert not stage.ran
    assert stage.docker.ups == []


def test_a_host_that_is_too_small_starts_nothing(stage: Stage) -> None:
    stage.engine.facts["MemTotal"] = 2**30
    with pytest.raises(HostError, match="not fit to run demo") as refused:
        stage.up()
    assert "ask for fewer tasks" in refused.value.hint
    assert not stage.ran


@pytest.mark.parametrize("draws", [True, False])
def test_a_build_draws_progress_only_if_the_view_does(
    draws: bool, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage.view, "draws", draws)
    stage.docker.lacks_image = True
    assert stage.up().success and stage.docker.drawn == [draws]


@pytest.mark.parametrize("paused", [False, True])
def test_a_cluster_that_is_up_is_not_started_again(stage: Stage, paused: bool) -> None:
    stage.up(keep=True)
    box = next(iter(stage.engine.boxes.values()))
    box.state = "paused" if paused else "running"
    with pytest.raises(HostError, match="demo is already up: chief-0") as refused:
        stage.up()
    assert "cluster-kit down demo" in refused.value.hint
    assert len(stage.engine.boxes) == 5


@pytest.fixture
def dockerfile(stage: Stage) -> str:
    """Returns the value of `build` for a Dockerfile next to the manifests."""
    (stage.workspace.root / "image").mkdir()
    (stage.workspace.root / "image/Dockerfile").write_text("FROM a\n")
    stage.docker.lacks_image = True
    return "../image"


def test_a_dockerfile_is_built_checked_and_run(stage: Stage, dockerfile: str) -> None:
    assert stage.up(build=dockerfile).success
    assert len(stage.docker.builds) == 1
    tag = next(word for word in stage.docker.builds[0] if word.startswith("--tag="))[6:]
    file = yaml.safe_load((stage.directory.path / "compose.yaml").read_text())
    assert (file["x-task"]["image"], file["x-task"]["pull_policy"]) == (tag, "never")
    assert "entrypoint" in file["x-task"], "the trainer is mounted into it"
    assert stage.up(build=dockerfile).success
    assert len(stage.docker.builds) == 1, "nothing has changed"


def test_a_failed_build_starts_nothing(stage: Stage, dockerfile: str) -> None:
    stage.docker.building = (1, ["ERROR: failed to solve: process ended with exit code: 7"])
    with pytest.raises(EngineError, match="exit code: 7") as told:
        stage.up(build=dockerfile)
    assert told.value.run == "" and stage.docker.ups == []
    assert stage.is_clean()


def test_missing_parts_of_a_built_image_are_a_problem_of_build(
    stage: Stage, dockerfile: str
) -> None:
    stage.docker.image_has["tensorflow"] = None
    with pytest.raises(ManifestError, match=r'build = "\.\./image": its `python3`'):
        stage.up(build=dockerfile)
    assert stage.docker.ups == []
