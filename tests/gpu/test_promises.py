"""A missing promised GPU ends the run at once; on a CPU host none is promised."""

from __future__ import annotations

import pytest

from cluster_kit.image.kit_image import image_tag
from tests.gpu.clusters import left, write
from tests.gpu.conftest import MakeKit, inventory
from tests.gpu.second_engine import SecondEngine

SERVERS = {"chief": 1, "worker": 2, "ps": 1}
PROGRAMS = {"chief": 0, "worker": 2, "ps": 0}
START_DEADLINE_S = 200


@pytest.mark.parametrize("roles", [SERVERS, PROGRAMS], ids=["servers", "programs"])
def test_a_promised_gpu_that_tensorflow_does_not_see_ends_the_run_at_once(
    nvidia_engine: SecondEngine,
    trainer_image: str,
    make_kit: MakeKit,
    roles: dict[str, int],
) -> None:
    """The CPU variant of the image sees no GPU, whatever the engine provides."""
    kit = make_kit(nvidia_engine, inventory(2))
    program = kit.program("import tensorflow, time\ntime.sleep(600)\n")
    keys = {**roles, "image": trainer_image, "program": program}
    done = kit.run("up", write(kit, **keys, deadline={"start": START_DEADLINE_S}))
    outcome = kit.outcome()
    assert done.returncode == 3, done.stdout + done.stderr
    assert (outcome["reason"], outcome["exit_code"]) == ("gpu-missing", 3)
    blamed = outcome["blame"]
    promised = {"worker-0": "GPU 0 (GPU-0000)", "worker-1": "GPU 1 (GPU-1111)"}[blamed]
    assert f"{blamed} was promised {promised}, sees none" in outcome["message"]
    assert f"was promised {promised}, sees none" in " ".join(done.stdout.split())
    assert outcome["timings_s"]["total"] < START_DEADLINE_S / 2
    seen = {task["name"]: (task["gpu"], task["gpu_seen"]) for task in outcome["tasks"]}
    assert seen[blamed] == ([blamed[-1]], [])
    assert left(kit, nvidia_engine) == []


def test_auto_trains_on_the_cpu_if_there_is_no_gpu(make_kit: MakeKit) -> None:
    kit = make_kit()
    done = kit.run(
        *("up", "smoke", "--name", kit.name, "--gpus", "auto"),
        *("--set", "evaluator=0", "--args=--epochs 1 --steps-per-epoch 5"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outcome = kit.outcome()
    assert outcome["success"] is True
    assert not any(task["gpu"] for task in outcome["tasks"])
    file = (kit.root / "compose" / kit.name / "compose.yaml").read_text()
    assert f"image: '{image_tag('cpu')}'" in file
    assert "reservations" not in file


def test_auto_trains_on_the_cpu_if_the_engine_refuses_the_gpus(make_kit: MakeKit) -> None:
    kit = make_kit(gpus=inventory(2))
    done = kit.run("render", "smoke", "--name", kit.name, "--gpus", "auto", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert image_tag("cpu") in done.stdout
    assert "reservations" not in done.stdout
