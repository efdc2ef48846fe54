"""One process builds an image, others wait for it."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_kit.image import user_image
from cluster_kit.util import locks
from tests.fakes.hosts import Machine
from tests.make import cluster

TAG = "cluster-kit/trainer:cpu-0"
OWN = replace(cluster(), image=TAG)
LOCK = "cluster-kit-build-cluster-kit-trainer-cpu-0.lock"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine) -> list[str]:
    """The images that exist; building one adds it."""
    there: list[str] = []
    machine.locks_in(tmp_path)
    monkeypatch.setattr(user_image, "image_present", lambda _host, tag: tag in there)

    def build(_host: object, _variant: str, _say: object, *, show: bool) -> None:
        assert locks.is_locked(tmp_path / LOCK) and not show
        there.append(TAG)

    monkeypatch.setattr(user_image, "ensure_image", build)
    return there


def test_an_image_is_built_once_under_a_lock(
    built: list[str], tmp_path: Path, machine: Machine
) -> None:
    assert user_image.build_layer(machine.host, OWN, Path(), lambda _line: None)
    assert not user_image.build_layer(machine.host, OWN, Path(), lambda _line: None)
    assert built == [TAG] and not locks.is_locked(tmp_path / LOCK)


def test_a_second_process_waits_and_builds_nothing(
    built: list[str], tmp_path: Path, machine: Machine
) -> None:
    outputs: list[str] = []
    with contextlib.ExitStack() as other:
        other.enter_context(locks.lock(tmp_path / LOCK, "process 7"))

        def say(line: str) -> None:
            outputs.append(line)
            built.append(TAG)
            other.close()

        assert not user_image.build_layer(machine.host, OWN, Path(), say)
    assert outputs == [f"waiting for process 7, which builds {TAG}"]
    assert built == [TAG]


def test_without_a_lock_the_image_is_built_nevertheless(
    built: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    machine.locks_in(tmp_path / "missing")
    monkeypatch.setattr(user_image, "ensure_image", lambda *_, **__: built.append(TAG))
    outputs: list[str] = []
    assert user_image.build_layer(machine.host, OWN, Path(), outputs.append)
    assert "cannot be locked" in outputs[0]
