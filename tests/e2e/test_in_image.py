"""Those of the trainer's tests that need what is in the image: TensorFlow, gRPC, pillow.

All others run on the host, with a Python that is no newer.
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
"""Pure Python all of them, so that this environment's files also do for the image's Python."""
WARM = "/tests/warm"
"""A Python there is forked from a process that has TensorFlow imported (tests/trainer/warm)."""
AT_ONCE = f"2*popen//python={WARM}/python"
"""What runs tests at the same time, beside those of the host."""
THREADS = ("TF_NUM_INTRAOP_THREADS=1", "TF_NUM_INTEROP_THREADS=2")
"""On any machine. Idle threads look for work for a while, which takes the CPU."""
TRAINER = ROOT / "tests" / "trainer"
NEED_THE_IMAGE = ("importorskip(", "find_spec(", "is in the image", "a part of the image")
"""What a file says of which the host skips a test."""
READS_WHAT_TASKS_SAY = (
    "agent/profiling/test_with_tf_profile.py",
    "agent/servers/test_with_tf_server.py",
    "agent/injected/test_with_tf_hooks.py",
    "agent/injected/test_with_tf_server_join.py",
    "agent/supervisor/test_whole_job.py",
)
WAITS_FOR_ITS_OWN_WORDS = ("agent/injected/test_with_tf_sessions.py", "warm/test_with_tf_warm.py")
"""They wait for what their own program prints, wherever that comes."""

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
"""Those that go through every way of training, and start a task for each: half of the time."""


@pytest.mark.parametrize(
    ("onednn", "tests"),
    [
        pytest.param("1", "others", marks=pytest.mark.first),
        pytest.param("1", "many ways", marks=[pytest.mark.first, pytest.mark.more]),
        pytest.param("0", "what tasks say", marks=pytest.mark.more),
    ],
)
def test_the_trainers_tests_pass_inside_the_image(tmp_path: Path, onednn: str, tests: str) -> None:
    """As on a CPU where TensorFlow announces oneDNN before anything else, and as on one where it
    says nothing."""
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
            *("-m", "not mounts"),  # no container may; they run on the host, without TensorFlow
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
    """The test files that need it, relative to tests/trainer."""
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


def test_those_that_read_what_tasks_say_are_known() -> None:
    """They run twice: with a TensorFlow that announces oneDNN, and with one that does not."""
    read = [name for name in need_the_image() if "from reading" in (TRAINER / name).read_text()]
    assert read == sorted((*READS_WHAT_TASKS_SAY, *WAITS_FOR_ITS_OWN_WORDS))


def test_all_that_use_tensorflow_are_run_there() -> None:
    named = {file.relative_to(TRAINER).as_posix() for file in TRAINER.rglob("test_with_tf_*.py")}
    assert named | set(MANY_WAYS) <= set(need_the_image())
