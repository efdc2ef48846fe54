"""Detection in real containers, small: every mode learns, is scored, stops, and resumes.

Invalid input is reported.
"""

from __future__ import annotations

import os
import re
import signal
import statistics
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.e2e import squares
from tests.e2e.board import shown
from tests.e2e.evidence import codes, events, log, output, restarts, saved_step
from tests.e2e.report_page import reported
from tests.e2e.running import kill_task, needs_root, read_until, running
from tests.e2e.scenes import copy_of_the_scenes
from tests.e2e.waiting import wait_for
from tests.kit import Kit, new_kit, remove, with_runs_of

SMALL = (
    "--set model.image_size=32 --set train_config.batch_size=8"
    " --set train_config.learning_rate.warmup_steps=0 --set eval_config.num_examples=50"
    " --log-steps 10 --save-secs 3"
)
ON_SQUARES = "--log-steps 10 --save-secs {} --keep 40"
MODES = {"detection-async": 90, "detection-sync": 50, "detection-coordinator": 240}
SAVE_SECS = {"detection-coordinator": 1}
"""Two of its tasks are killed once there is a checkpoint, which must be before the end. 10 for the
others: each checkpoint is scored."""
EXTRACTORS = {"detection-sync": "mobilenet_v2"}
"""Version 1, the default here, has half as many layers, which takes half the time."""
FURTHER = {"detection-coordinator": [pytest.mark.more]}
"""The quickstart also has a coordinator, and is trained in many tests."""
ALONE = ("--set", "evaluator=0")
PNG = b"\x89PNG\r\n\x1a\n"
Trained = Callable[[str], Kit]


def on_one_worker(manifests: Iterable[str]) -> list[Any]:
    """Returns parameters whose tests run in one process, so that a shared training is made once."""
    return [
        pytest.param(name, marks=[pytest.mark.xdist_group(name), *FURTHER.get(name, ())])
        for name in manifests
    ]


def command(kit: Kit, manifest: str, arguments: str, *more: str) -> list[str]:
    given = f"--args={SMALL} {arguments}"
    return ["up", manifest, "--name", kit.name, "--workers", "1", given, *more]


def on_squares(kit: Kit, manifest: str, arguments: str) -> list[str]:
    fixed = ON_SQUARES.format(SAVE_SECS.get(manifest, 10))
    given = ("--data", str(kit.root / "squares"), f"--args={fixed} {arguments}")
    return ["up", manifest, "--name", kit.name, "--workers", "1", *given]


def kill(client: docker.DockerClient, kit: Kit, victim: str, attempts: int) -> None:
    """Kill a task once there is a checkpoint; wait until the chief, after `attempts` starts, trains
    again."""

    def steps() -> list[int]:
        return [event["step"] for event in events(kit, "chief-0", "step")]

    trained = steps()[-1]
    wait_for("a checkpoint", lambda: saved_step(kit) > trained, 150)
    kill_task(client, kit, victim)
    wait_for("another start", lambda: len(events(kit, "chief-0", "start")) == attempts, 150)
    reported = len(steps())
    wait_for(f"training after {victim} was killed", lambda: len(steps()) > reported + 1, 150)


@pytest.fixture(scope="module")
def trained(
    tmp_path_factory: pytest.TempPathFactory, engine_client: docker.DockerClient
) -> Iterator[Trained]:
    """Returns a function that trains a manifest once; tests read the run, or continue a copy of it.

    Two of the coordinator's tasks are killed during the training, if this user may do that.
    """
    made: dict[str, Kit] = {}

    def train(manifest: str) -> Kit:
        if manifest not in made:
            kit = made[manifest] = new_kit(tmp_path_factory.mktemp("trained"), "e2e")
            squares.made(kit, EXTRACTORS.get(manifest, "mobilenet_v1"))
            with running(kit, *on_squares(kit, manifest, f"--steps {MODES[manifest]}")) as process:
                if manifest == "detection-coordinator" and os.geteuid() == 0:
                    read_until(process, " | step ")
                    kill(engine_client, kit, "worker-0", attempts=1)
                    kill(engine_client, kit, "ps-0", attempts=2)
                printed, _ = process.communicate(timeout=240)
            assert process.returncode == 0, printed
        return made[manifest]

    yield train
    for kit in made.values():
        remove(engine_client, kit.name)


@pytest.mark.parametrize("manifest", on_one_worker(MODES))
def test_every_mode_learns_is_scored_and_ends(trained: Trained, manifest: str) -> None:
    kit, steps = trained(manifest), MODES[manifest]
    reported(kit, "loss", "map_50", "steps_per_s")
    metrics = kit.outcome()["metrics"]
    assert steps <= metrics["updates"] <= steps + 2
    assert metrics["reached"] == "steps"
    assert 0 <= metrics["map"] <= metrics["map_50"] <= 1
    assert metrics["images_per_second"] > 0
    assert metrics["best_checkpoint"]
    assert set(codes(kit).values()) == {0}
    losses = [found["loss"] for found in events(kit, "chief-0", "step") if "loss" in found]
    # The loss of one batch of 8 is noisy.
    assert statistics.mean(losses[-3:]) < 0.85 * losses[0], losses
    scored = events(kit, "evaluator-0", "evaluation")
    found = [(score["step"], score["map_50"]) for score in scored]
    assert found[-1][1] > 0.3, f"it finds next to nothing, as at the begin, with 0.02: {found}"
    assert scored[-1]["step"] == metrics["updates"] == saved_step(kit)
    assert scored[-1]["map_50"] == pytest.approx(metrics["map_50"], abs=1e-3)
    for picture in ("last.png", "best.png"):
        assert (output(kit) / "detections" / picture).read_bytes().startswith(PNG)
    for kept in ("pipeline.toml", "model/saved_model.pb", "best/saved_model.pb", "result.json"):
        assert (output(kit) / kept).exists(), kept
    if manifest == "detection-coordinator":
        check_board(kit)


def check_board(kit: Kit) -> None:
    """TensorBoard shows the same figures of both runs, and the detections in the images."""
    with shown(kit, runs=3) as board:
        wait_for("what it has read", lambda: board.read_of(("train", "validation")))
        wait_for("pictures in TensorBoard", lambda: board.tags("images"))
        scalars, images = board.tags("scalars"), board.tags("images")
        assert "loss" in scalars["train"] & scalars["validation"]
        assert "map_50" in scalars["validation"] and images == {"validation": {"detections"}}
        assert {"batch_size", "optimizer.type", "mode"} <= board.hyperparameters()


@pytest.mark.more
def test_a_stopped_training_continues_until_its_loss_is_not_finite(kit: Kit) -> None:
    """In graph mode: test_linear_regression.py, and tests/trainer/programs/training/graph_mode."""
    command_of = partial(command, kit, "detection-coordinator")
    with running(kit, *command_of("--steps 5000 --save-secs 600", *ALONE)) as process:
        read_until(process, " | step 2")
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130, printed
    saved = saved_step(kit)
    assert saved > 10
    rate = "--set train_config.learning_rate.learning_rate=1e30"
    done = kit.run(*command_of(f"--steps {saved + 100} {rate}", *ALONE, "--resume"))
    assert done.returncode == 5, done.stdout + done.stderr
    resumed = re.search(r"continuing at global step (\d+)", done.stderr)
    assert resumed and saved <= int(resumed[1]) <= saved + 4
    assert re.search(r"the loss is not finite after step \d+", done.stdout), done.stdout
    assert re.search(r"the last good checkpoint,? is kept", done.stdout), done.stdout
    assert saved_step(kit) == saved


@needs_root
@pytest.mark.more
@pytest.mark.xdist_group("detection-coordinator")
def test_the_coordinator_survives_killed_tasks(trained: Trained) -> None:
    """Another worker repeats the step of a lost worker. After the loss of a ps, the program starts
    again from its checkpoint. A chief that is killed: test_drill.py."""
    kit = trained("detection-coordinator")
    assert min(restarts(kit)[task] for task in ("worker-0", "ps-0")) >= 1
    assert [start["attempt"] for start in events(kit, "chief-0", "start")] == [1, 2]
    assert log(kit, "chief-0").count("continuing at global step") == 1


def test_several_replicas_without_a_ps_are_refused(kit: Kit) -> None:
    done = kit.run(*command(kit, "detection-async", "--steps 5", "--set", "ps=0"))
    assert done.returncode == 2, done.stdout + done.stderr
    assert "At least 1 ps task is needed for distributed training" in done.stderr
    assert "--set ps = 0: " in done.stderr
    assert "write `--ps 1`" in done.stderr


@pytest.mark.xdist_group("detection-async")
def test_a_broken_record_is_reported_and_nothing_is_lost(
    kit: Kit, trained: Trained, tmp_path: Path
) -> None:
    with_runs_of(trained("detection-async"), kit)
    before = saved_step(kit)
    data = copy_of_the_scenes(tmp_path)
    broken = sorted(data.glob("train-*.tfrecord"))[0]
    content = bytearray(broken.read_bytes())
    content[5000] ^= 255
    broken.chmod(0o644)
    broken.write_bytes(content)
    done = kit.run(
        *command(kit, "detection-async", f"--steps {before + 20}", "--data", str(data)),
        *("--set", "evaluator=0", "--resume"),
    )
    assert done.returncode == 5, done.stdout + done.stderr
    assert re.search(rf"{re.escape(broken.name)}\b.* record \d+", done.stdout), done.stdout
    assert saved_step(kit) == before > 0


def test_an_invalid_configuration_is_reported_before_training(kit: Kit) -> None:
    wrong = "--steps 5 --set train_config.batch_sise=4"
    done = kit.run(*command(kit, "detection-async", wrong))
    assert done.returncode == 5, done.stdout + done.stderr
    assert "train_config.batch_sise" in done.stdout
