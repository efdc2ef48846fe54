"""What only an engine tells of a failure: a task that ran out of memory, and others wait for it."""

from __future__ import annotations

import docker

from tests.kit import Kit, mine


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
