"""What goes wrong is named, with the task to blame, its own words and a distinct exit code."""

from __future__ import annotations

import docker

from tests.e2e.evidence import codes
from tests.kit import Kit, mine

RAISES = """
import tensorflow as tf
print("about to fail")
raise RuntimeError("the learning rate fell off the table")
"""


def test_a_chief_that_raises_is_blamed_in_its_own_words(
    kit: Kit, client: docker.DockerClient
) -> None:
    done = kit.run("up", "smoke", "--name", kit.name, "--program", kit.program(RAISES))
    assert done.returncode == 5, done.stderr
    assert "RuntimeError: the learning rate fell off the table" in done.stdout
    outcome = kit.outcome()
    assert outcome["success"] is False
    assert (outcome["exit_code"], outcome["blame"]) == (5, "chief-0")
    assert "the learning rate fell off the table" in outcome["last_words"]
    assert codes(kit)["chief-0"] == 1
    assert mine(client, kit.name) == ([], [])


def test_a_worker_that_never_comes_is_named_at_the_start_deadline(
    kit: Kit, client: docker.DockerClient
) -> None:
    done = kit.run(
        *("up", "quickstart", "--name", kit.name),
        *("--set", "deadline.start=12", "--set", 'task.worker-1.memory="12m"'),
    )
    assert done.returncode == 6, done.stderr
    outcome = kit.outcome()
    assert (outcome["exit_code"], outcome["reason"]) == (6, "start-deadline")
    assert outcome["blame"] == "worker-1"
    assert "worker-1" in done.stdout
    assert next(task for task in outcome["tasks"] if task["name"] == "worker-1")["oom"] is True
    assert mine(client, kit.name) == ([], [])


def test_a_program_that_never_ends_is_ended_at_the_job_deadline(
    kit: Kit, client: docker.DockerClient
) -> None:
    program = kit.program("import time\nprint('still here', flush=True)\ntime.sleep(600)\n")
    done = kit.run(
        *("up", "smoke", "--name", kit.name, "--program", program),
        *("--set", "deadline.job=4", "--set", "evaluator=0"),
    )
    assert done.returncode == 6, done.stderr
    outcome = kit.outcome()
    assert (outcome["reason"], outcome["blame"]) == ("job-deadline", "chief-0")
    assert mine(client, kit.name) == ([], [])


def test_a_wrong_manifest_starts_nothing(kit: Kit, client: docker.DockerClient) -> None:
    done = kit.run("up", "smoke", "--name", kit.name, "--workers", "0", "--ps", "-1")
    assert done.returncode == 2
    assert "--workers (make: N_WORKERS) = 0" in done.stderr
    assert "--ps (make: N_PS) = -1" in done.stderr
    assert mine(client, kit.name) == ([], [])
