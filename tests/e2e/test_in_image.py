"""Runs the trainer's tests that need the packages of the image: TensorFlow, gRPC, pillow.

All others run on the host, whose Python is not newer.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cluster_kit.image.kit_image import image_tag
from tests.make import ROOT

PYTEST = ("pytest", "pytest-xdist", "execnet", "pluggy", "iniconfig", "packaging", "pygments")
"""Pure Python packages, so that this environment's files also work with the image's Python."""
WARM = "/tests/warm"
"""Python processes started there are forked from one with TensorFlow imported
(tests/trainer/warm)."""
AT_ONCE = f"2*popen//python={WARM}/python"
"""The processes that run tests in parallel, next to the tests on the host."""
THREADS = ("TF_NUM_INTRAOP_THREADS=1", "TF_NUM_INTEROP_THREADS=2")
"""For any machine: idle threads poll for work for a while, which takes CPU time."""
TRAINER = ROOT / "tests" / "trainer"
NEED_THE_IMAGE = ("importorskip(", "find_spec(", "is in the image", "a part of the image")
"""Text in a file that shows that the host skips one of its tests."""
READS_WHAT_TASKS_SAY = (
    "agent/profiling/test_with_tf_profile.py",
    "agent/servers/test_with_tf_server.py",
    "agent/injected/test_with_tf_hooks.py",
    "agent/injected/test_with_tf_server_join.py",
    "agent/supervisor/test_whole_job.py",
    "programs/classifier/data/test_with_tf_data_service.py",
)
WAITS_FOR_ITS_OWN_WORDS = ("agent/injected/test_with_tf_sessions.py", "warm/test_with_tf_warm.py")
"""Tests that wait for their own program's output, wherever it appears."""

MANY_WAYS = (
    "agent/injected/test_with_tf_period.py",
    "agent/injected/test_with_tf_sessions.py",
    "programs/classifier/model/test_with_tf_export.py",
    "programs/classifier/test_with_tf_classifier.py",
    "programs/classifier/train/test_with_tf_classifier_modes.py",
    "programs/classifier/train/test_with_tf_clones.py",
    "programs/classifier/train/test_with_tf_interruption.py",
    "programs/detection/train/test_with_tf_detection_train.py",
)
"""Tests of every way of training, each with its own task: half of the time."""


@pytest.mark.parametrize(
    ("onednn", "tests"),
    [
        pytest.param("1", "others", marks=pytest.mark.first),
        pytest.param("1", "many ways", marks=[pytest.mark.first, pytest.mark.more]),
        pytest.param("0", "what tasks say", marks=pytest.mark.more),
    ],
)
def test_the_trainers_tests_pass_inside_the_image(tmp_path: Path, onednn: str, tests: str) -> None:
    """They run with the setting under which TensorFlow announces oneDNN, and with the one under
    which it prints nothing."""
    chosen = {
        "others": [name for name in need_the_image() if name not in MANY_WAYS],
        "many ways": MANY_WAYS,
        "what tasks say": READS_WHAT_TASKS_SAY,
    }[tests]
    for name in PYTEST:
        copy_package(name, tmp_path)
    done = subprocess.run(
        [
            *("docker", "run", "--rm", "--init", "--read-only", "--cap-drop", "ALL"),
            *("--user", f"{os.getuid()}:{os.getgid()}"),
            *("--tmpfs", "/tmp:mode=1777", "--label", "cluster-kit.test=in-image"),
            *("--volume", f"{tmp_path}:/pytest:ro", "--volume", f"{ROOT}/tests/trainer:/tests:ro"),
            *("--env", "PYTHONPATH=/opt/trainer:/pytest", "--env", "TRAINER_PATH=/opt/trainer"),
            *("--env", f"TF_ENABLE_ONEDNN_OPTS={onednn}"),
            *(word for variable in THREADS for word in ("--env", variable)),
            *("--entrypoint", "python3", image_tag("cpu")),
            *(f"{WARM}/server.py", "python3", "-m", "pytest"),
            *("-c", "/dev/null", "-p", "no:cacheprovider", "-q", "-rs", "--durations=10"),
            *("--tx", AT_ONCE, "--dist", "worksteal"),
            # Not allowed in a container: these run on the host, without TensorFlow.
            *("-m", "not mounts"),
            *(f"/tests/{name}" for name in chosen),
        ],
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout, done.stdout[-2000:]
    print(done.stdout)


def need_the_image() -> list[str]:
    """Returns the test files that need the image, relative to tests/trainer."""
    files = {file: file.read_text(encoding="utf-8") for file in TRAINER.rglob("test_*.py")}
    found = [file for file, text in files.items() if any(word in text for word in NEED_THE_IMAGE)]
    return sorted(file.relative_to(TRAINER).as_posix() for file in found)


def copy_package(name: str, target: Path) -> None:
    for file in importlib.metadata.files(name) or []:
        if ".." in file.parts or "__pycache__" in file.parts:
            continue
        destination = target / file
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(str(file.locate())), destination)


def test_tests_that_read_output_of_tasks_are_listed() -> None:
    """They run twice: with a TensorFlow that announces oneDNN, and with one that does not."""
    read = [name for name in need_the_image() if "from reading" in (TRAINER / name).read_text()]
    assert read == sorted((*READS_WHAT_TASKS_SAY, *WAITS_FOR_ITS_OWN_WORDS))


def test_all_tests_that_use_tensorflow_run_in_the_image() -> None:
    named = {file.relative_to(TRAINER).as_posix() for file in TRAINER.rglob("test_with_tf_*.py")}
    assert named | set(MANY_WAYS) <= set(need_the_image())
