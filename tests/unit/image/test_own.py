"""A user's image: the questions that the kit asks it, and the errors about what it lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cluster_kit.errors import EngineError, ManifestError
from cluster_kit.image import user_image
from cluster_kit.resolved import TRAINER, Mount
from cluster_kit.util.process import Completed
from tests.fakes.docker import ALL_THERE
from tests.fakes.hosts import Machine
from tests.make import cluster

Refused = Callable[..., str]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Refused:
    """Returns the error for a cluster whose image answers this; "" if the image is suitable."""

    def ask(keys: dict[str, Any] | None = None, **says: Any) -> str:
        line = json.dumps({**ALL_THERE, **says})
        machine.starts(run=lambda command: Completed((), 0, "", ""))
        machine.starts(run=lambda *_, **__: Completed((), 0, f"noise\n{line}\n", ""))
        try:
            user_image.refuse_if_unfit(machine.host, cluster(image="mine:1", **(keys or {})), print)
        except ManifestError as error:
            return str(error)
        return ""

    return ask


def test_the_query_runs_like_a_task_with_the_trainer_mounted() -> None:
    command = user_image.look_command(cluster(image="mine:1", program="train.py"), "/tmp/out")
    asked = {"--network=none", "--read-only", "--cap-drop=ALL", "--user=1000:1000"}
    assert asked <= set(command)
    mounts = [word for word in command if word.startswith("--mount")]
    assert f'"target={TRAINER}",readonly' in mounts[0]
    assert mounts[1].endswith('"source=/tmp/out","target=/output"')
    assert command[command.index("mine:1") :] == ("mine:1", f"{TRAINER}/own_image/look.py", "grpc")


def test_the_requirements_depend_on_the_program_and_the_bandwidth() -> None:
    slow = {"worker": {"bandwidth": "100mbit"}}
    assert user_image.needs(cluster(image="a", program="train.py", role=slow)) == (
        "grpc",
        "pyroute2",
    )
    assert user_image.needs(cluster(image="a")) == (
        "grpc",
        "numpy",
        "tf_keras",
        "/opt/datasets/digits",
    )
    assert user_image.needs(cluster(image="a", data="../mine")) == ("grpc", "numpy", "tf_keras")
    assert "pycocotools" in user_image.needs(
        cluster(image="a", program="detection", data="../mine")
    )


def test_an_image_with_everything_is_suitable(refused: Refused) -> None:
    assert refused() == ""
    assert refused(native=False, tensorflow="") == ""


def test_a_python_that_is_too_old_is_reported(refused: Refused) -> None:
    assert "it has Python 3.8.10; the trainer needs 3.9 or newer" in refused(python=[3, 8, 10])
    assert "detection needs 3.11 or newer" in refused({"program": "detection", "data": "../mine"})


def test_a_missing_or_old_tensorflow_is_reported(refused: Refused) -> None:
    told = refused(tensorflow=None, native=False, lacks=["grpc", "numpy"])
    assert "its `python3` (Python 3.9.18) has no TensorFlow" in told
    assert "ENV PATH=" in told and "1 problem" in told
    assert "it has TensorFlow 1.15.5; the trainer needs TensorFlow 2" in refused(
        tensorflow="1.15.5"
    )


def test_missing_modules_are_reported_by_their_names_in_pip(refused: Refused) -> None:
    told = refused(lacks=["grpc", "tf_keras"])
    assert "it lacks grpcio, tf_keras, which classifier needs" in told
    assert "RUN pip install grpcio tf_keras" in told


def test_a_data_set_that_only_the_kits_image_has_is_reported(refused: Refused) -> None:
    told = refused(lacks=["/opt/datasets/digits"])
    assert 'data = "digits": only the kit\'s own image has this data set' in told


def test_a_user_who_cannot_write_is_reported_with_the_systems_message(refused: Refused) -> None:
    told = refused(output="Permission denied")
    assert "its user 1000:1000 cannot write a directory of this host: Permission denied" in told


def test_all_problems_are_reported_together(refused: Refused) -> None:
    assert "3 problems" in refused(python=[3, 7, 1], lacks=["grpc"], output="Permission denied")


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        (Completed((), 127, "", 'exec: "python3": executable file not found in $PATH'), "no `pyth"),
        (Completed((), 127, "", "[FATAL tini (7)] exec python3 failed: No such file"), "no `pyth"),
        (Completed((), 1, "", "SyntaxError: invalid syntax"), "did not say what is in it"),
    ],
)
def test_an_image_that_does_not_answer_is_reported_with_the_reason(
    machine: Machine, ended: Completed, told: str
) -> None:
    machine.starts(run=lambda *_, **__: ended)
    with pytest.raises((ManifestError, EngineError), match=told):
        user_image.look(machine.host, cluster(image="mine:1"))


def test_an_image_that_does_not_exist_is_reported_with_the_registrys_message(
    monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    denied = Completed((), 1, "", "Error response from daemon: pull access denied for mine")
    machine.starts(run=lambda command: denied)
    machine.starts(run=lambda *_, **__: denied)
    outputs: list[str] = []
    with pytest.raises(ManifestError, match="pull access denied for mine"):
        user_image.refuse_if_unfit(machine.host, cluster(image="mine:1"), outputs.append)
    assert outputs == ["pulling mine:1"]


def test_the_kits_own_image_gets_no_mount() -> None:
    assert not cluster().mounts_trainer
    assert Mount("/x", TRAINER) not in cluster().mounts
