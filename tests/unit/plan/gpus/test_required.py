"""`gpus = "require"` never trains on the CPU; "auto" does, with a warning if there are GPUs."""

from __future__ import annotations

import pytest

from cluster_kit.advice.of_program import refused_gpus
from tests.make import cluster, gpus, host, manifest, problems

REFUSAL = 'could not select device driver "nvidia"'


def test_require_uses_free_gpus_as_auto_does() -> None:
    there = host(gpus=gpus(3), gpus_taken=(("0", "other"),))
    made = cluster(there, gpus="require", worker=2)
    assert [task.gpus for task in made.of("worker")] == [("1",), ("2",)]
    assert made.variant == "gpu"


@pytest.mark.parametrize(
    ("there", "rule"),
    [
        (host(no_gpu="no driver"), "this host has no GPU that can be used"),
        (host(gpus=gpus(2), gpu_refusal=REFUSAL), f"the engine refuses: {REFUSAL}"),
        (host(gpus=gpus(1)), "2 workers with 1 GPU(s) each need 2, there are 1"),
    ],
    ids=["none", "refused", "too few"],
)
def test_require_is_refused_if_auto_would_train_on_the_cpu(there, rule) -> None:  # type: ignore[no-untyped-def]
    [problem] = problems(there, gpus="require", worker=2)
    assert (problem.key_path, problem.value, problem.rule) == ("gpus", '"require"', rule)
    assert 'gpus = "none"' in problem.hint_text()


def test_auto_trains_on_the_cpu_with_a_warning_if_the_engine_refuses_the_gpus() -> None:
    there = host(gpus=gpus(2), gpu_refusal=REFUSAL)
    written = manifest(gpus="auto", worker=2)
    assert all(not task.gpus for task in cluster(there, gpus="auto", worker=2).tasks)
    [hint] = refused_gpus(written, there)
    assert hint.location == "gpus" and "train on the CPU" in hint.what
    assert REFUSAL in hint.rule
    assert "nvidia-ctk" in hint.fix and 'gpus = "require"' in hint.fix


@pytest.mark.parametrize("asked", ["none", "auto", "require"])
def test_there_is_no_warning_without_a_reason(asked: str) -> None:
    assert refused_gpus(manifest(gpus=asked), host(gpus=gpus(2))) == []
    assert refused_gpus(manifest(gpus=asked), host(no_gpu="no driver")) == []
    if asked != "auto":
        assert refused_gpus(manifest(gpus=asked), host(gpus=gpus(2), gpu_refusal=REFUSAL)) == []
