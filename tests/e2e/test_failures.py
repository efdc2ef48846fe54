"""A failure that only the engine reports: a task ran out of memory, and others wait for it."""

from __future__ import annotations

import docker

from tests.kit import Kit, mine


def test_a_worker_without_enough_memory_to_start_ends_the_job_at_once(
    kit: Kit, client: docker.DockerClient
) -> None:
    """A server in Python needs more than twice this memory."""
    done = kit.run(
        *("up", "quickstart", "--name", kit.name, "--set", "server=python"),
        *("--set", "evaluator=0"),
        *("--set", "deadline.start=300", "--set", 'task.worker-1.memory="100m"'),
    )
    assert done.returncode == 5, done.stderr
    outcome = kit.outcome()
    assert (outcome["exit_code"], outcome["reason"]) == (5, "failed")
    assert outcome["blame"] == "worker-1"
    assert outcome["timings_s"]["total"] < 100
    assert "worker-1 ran out of memory before the job could begin: it has 100 MiB" in done.stdout
    assert next(task for task in outcome["tasks"] if task["name"] == "worker-1")["oom"] is True
    assert mine(client, kit.name) == ([], [])
