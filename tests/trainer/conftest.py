"""The package of the image, importable without installing it; ports, and a function that runs
tasks."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forked
import pytest

IMAGE = Path(os.environ.get("TRAINER_PATH") or Path(__file__).parents[2] / "images" / "trainer")
sys.path.insert(0, str(IMAGE))
AnyTask = subprocess.Popen | forked.Task
PYTHON = os.environ.get("WARM_PYTHON") or sys.executable
"""A Python with TensorFlow already imported, if there is one: warm/server.py."""


@pytest.fixture(autouse=True)
def nothing_is_rewritten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test in whose process AutoGraph rewrites a function of the trainer.

    None has a Python `if` or loop on tensors, and rewriting them took a chief 1 to 2 s of CPU time
    before its first step.
    """
    if "tensorflow" not in sys.modules:
        yield
        return
    from tensorflow.python.autograph.impl import api

    rewrite, rewritten = api._convert_actual, set()

    def noted(entity: Any, context: Any) -> Any:
        if entity.__module__.startswith("trainer."):
            rewritten.add(f"{entity.__module__}.{entity.__qualname__}")
        return rewrite(entity, context)

    monkeypatch.setattr(api, "_convert_actual", noted)
    yield
    assert rewritten == set(), "use `autograph=False` or tf.autograph.experimental.do_not_convert"


@pytest.fixture(scope="session")
def free_port() -> Iterator[Callable[[], int]]:
    """Returns a function that gives a free TCP port of 127.0.0.1.

    The port is held until all tests have ended, so that no other test and no outgoing connection
    gets it, not even between two servers that a test starts on it: a bound socket that does not
    listen keeps the port from automatic assignment, but not from servers that use SO_REUSEADDR.
    """
    with contextlib.ExitStack() as held:

        def find() -> int:
            holder = held.enter_context(socket.socket())
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind(("127.0.0.1", 0))
            return holder.getsockname()[1]

        yield find


@pytest.fixture(scope="session")
def tasks_parent() -> Iterator[socket.socket]:
    with forked.parent(IMAGE) as asking:
        yield asking


@pytest.fixture
def run_task(tmp_path: Path, tasks_parent: socket.socket) -> Iterator[Callable[..., AnyTask]]:
    """Start `python -m trainer ARGUMENTS…` as a task with output in tmp_path; it is killed at the
    end.

    With `anew`, and for servers always, the task is a new Python process, as in a container; else
    it is forked, which is cheaper. Ops on a server read /proc/self/environ, which in a fork is the
    parent's.
    """
    started: list[AnyTask] = []

    def run(
        name: str, cluster: dict, *arguments: str, anew: bool = False, **variables: object
    ) -> AnyTask:
        role, _, index = name.rpartition("-")
        environment = {
            **os.environ,
            "PYTHONPATH": str(IMAGE),
            "CLUSTER_KIT_OUTPUT": str(tmp_path),
            "CLUSTER_KIT_TASK": name,
            "TMPDIR": str(tmp_path),
            "TF_CONFIG": json.dumps(
                {"cluster": cluster, "task": {"type": role, "index": int(index)}}
            ),
            **{key: str(value) for key, value in variables.items()},
        }
        if anew or arguments[:1] == ("serve",):
            process: AnyTask = subprocess.Popen(
                [sys.executable, "-m", "trainer", *arguments],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        else:
            process = forked.Task(tasks_parent, arguments, environment)
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs import TensorFlow themselves, as a user's program does."""
    monkeypatch.delenv("WARM_PYTHON", raising=False)


@pytest.fixture
def events(tmp_path: Path) -> Callable[[str], list[dict]]:
    """The events of a task's progress file."""

    def read(name: str) -> list[dict]:
        text = (tmp_path / "progress" / f"{name}.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    return read


@pytest.fixture
def toy_tensorflow(tmp_path: Path) -> None:
    """A module that replaces TensorFlow for programs in tmp_path, with everything that the hooks
    need."""
    (tmp_path / "tensorflow.py").write_text("print('importing')\n")


@pytest.fixture
def alone(tmp_path: Path):
    """A task without a cluster, with output in tmp_path."""
    from trainer.agent.task import read_task

    return read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path)})


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Two classes of images, which differ in which half is bright: 30 images per class and
    split."""
    import tensorflow as tf

    root = tmp_path / "data"
    for split in ("Train", "Validate", "Test"):
        for name, bright in (("left", slice(0, 4)), ("right", slice(4, 8))):
            folder = root / split / name
            folder.mkdir(parents=True)
            for index in range(30):
                pixels = tf.random.stateless_uniform((8, 8, 3), (index, len(name)), 0, 90).numpy()
                pixels[:, bright] += 150
                png = tf.io.encode_png(tf.cast(pixels, tf.uint8))
                (folder / f"{index:02}.png").write_bytes(png.numpy())
    return root


@pytest.fixture
def program(tmp_path: Path):
    """Returns a function that writes a Python program and returns its path."""

    def write(text: str) -> str:
        path = tmp_path / "program.py"
        path.write_text("import os, sys, time, signal\n" + text)
        return str(path)

    return write
