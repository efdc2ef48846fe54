"""With TensorFlow: a Python with TensorFlow already imported behaves like one without."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import IMAGE, PYTHON
from reading import read_until

if not find_spec("tensorflow"):
    pytest.skip("TensorFlow is in the image, not here", allow_module_level=True)
HOOKS = IMAGE / "trainer" / "agent" / "injected" / "on_path"
WAITS = "import os, time; print('pid', os.getpid(), flush=True); time.sleep(60)"


def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PYTHON, *arguments], env={**os.environ, **variables}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def said(*arguments: str, code: int = 0, **variables: str) -> tuple[str, str]:
    task = start(*arguments, **variables)
    found = task.communicate(timeout=30)
    assert task.returncode == code, found
    return found


def test_tensorflow_is_available_at_once_and_is_imported_as_usual() -> None:
    began = os.times().children_user
    text = "import sys; assert 'tensorflow' not in sys.modules; import tensorflow; print('there')"
    out, told = said("-c", text, PYTHONPATH=str(HOOKS), CLUSTER_KIT_AFTER_IMPORT="tf1,refuse")
    assert out == "there\n"
    assert "oneDNN" in told or os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0"
    assert os.times().children_user - began < 0.5
    hooked = "import tensorflow as tf; print(tf.executing_eagerly(), hasattr(tf, 'placeholder'))"
    variables = {"PYTHONPATH": str(HOOKS), "CLUSTER_KIT_AFTER_IMPORT": "tf1"}
    assert said("-c", hooked, **variables)[0] == "False True\n"
    assert said("-c", hooked)[0] == "True False\n"


def test_a_toy_in_its_place_is_found(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("print('a toy')\n")
    (tmp_path / "program.py").write_text(
        "import sys, tensorflow\nsys.exit(sys.argv[1:].index('x'))"
    )
    assert said(str(tmp_path / "program.py"), "y", "x", code=1)[0] == "a toy\n"


def test_errors_and_exit_codes_equal_pythons() -> None:
    assert "ZeroDivisionError" in said("-c", "1 / 0", code=1)[1]
    assert said("-c", "import sys; sys.exit('words')", code=1)[1] == "words\n"
    assert said("-c", "import os; os._exit(7)", code=7) == ("", "")
    text = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert said("-c", text, code=-signal.SIGKILL) == ("", "")


def test_signals_reach_the_program_and_its_client_ends_it() -> None:
    patient = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(9)); "
    for text, code in ((WAITS, -signal.SIGTERM), (patient + WAITS, 9)):
        task = start("-c", text)
        read_until(task, "pid")
        task.terminate()
        assert task.wait(10) == code
    task = start("-c", WAITS)
    program = Path("/proc", read_until(task, "pid")[-1].split()[1])
    task.kill()
    until = time.monotonic() + 10
    while program.exists():
        assert time.monotonic() < until
        time.sleep(0.02)
