"""The runner compared with Python itself: the same program, the same output, the same exit code."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import IMAGE

pytestmark = pytest.mark.processes
RUNNER = IMAGE / "trainer" / "agent" / "injected" / "runner.py"


def run(*command: object, cwd: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=20
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def both(tmp_path: Path):
    """Returns a function that runs a program in both ways, and returns their exit codes, stdout and
    stderr."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "helper.py").write_text("def fail(): raise ValueError('in the helper')\n")

    def compare(text: str, *arguments: str) -> tuple[int, str, str]:
        (folder / "program.py").write_text(text)
        plain = run("programs/program.py", *arguments, cwd=tmp_path)
        assert run(RUNNER, "programs/program.py", *arguments, cwd=tmp_path) == plain
        return plain

    return compare


ABOUT_ITSELF = """'''Its docstring.'''
import pickle, sys, threading
import __main__
class Own: pass
print(sys.argv, sys.orig_argv, sys.path, __name__, __file__, __doc__, __package__, __spec__)
print(__main__.__dict__ is globals(), sorted(globals()), type(__loader__), __builtins__)
print(type(pickle.loads(pickle.dumps(Own()))) is Own, threading.current_thread().name)
print(sorted(name for name in sys.modules if 'runner' in name or 'trainer' in name))
"""


def test_what_a_program_can_see_of_itself(both):
    code, printed, _ = both(ABOUT_ITSELF, "--one", "two words")
    assert code == 0
    assert "['programs/program.py', '--one', 'two words']" in printed


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import sys; sys.exit()", 0),
        ("import sys; sys.exit(5)", 5),
        ("import sys; sys.exit(-1)", 255),
        ("import sys; sys.exit(256)", 0),
        ("import sys; sys.exit(2**70)", 255),
        ("import sys; sys.exit(True)", 1),
        ("import sys; print('out'); sys.exit('no data in /data')", 1),
        ("import sys; sys.exit(['a', 'list'])", 1),
        ("import os; os._exit(7)", 7),
        ("raise KeyboardInterrupt", -2),
        ("import os; os.kill(os.getpid(), 9)", -9),
    ],
)
def test_exit_codes(both, text, code):
    assert both(text)[0] == code


@pytest.mark.parametrize(
    "text",
    [
        "print('out')\nraise RuntimeError('why')",
        "import helper\nhelper.fail()",
        "import helper\ntry:\n    helper.fail()\nexcept ValueError as e:\n    raise OSError from e",
        "def deep(n):\n    1 / n\n    deep(n - 1)\ndeep(4)",
        "print('a'\n",
        "import nowhere_at_all",
        "raise ExceptionGroup('several', [ValueError(1), KeyError(2)])",
        "import sys\nsys.excepthook = lambda *a: print('hook', a[0])\n1 / 0",
        "import threading\nthreading.Thread(target=lambda: 1 / 0).start()",
        "class Fails:\n    def __call__(self): 1 / 0\n    def __repr__(self): return 'it'\n"
        "import atexit\natexit.register(Fails())",
    ],
)
def test_tracebacks(both, text):
    _, _, output = both(text)
    assert "runner.py" not in output


AT_ITS_END = """
import atexit, sys, threading, time, weakref
from concurrent.futures import ThreadPoolExecutor
atexit.register(lambda: print('atexit one'))
atexit.register(lambda: print('atexit two', left.closed))
left = open('left-open', 'w')
left.write('written')
main_done, over = threading.Event(), threading.Event()
def work():
    main_done.wait()
    time.sleep(0.3)
    print('thread done')
    over.set()
threading.Thread(target=work).start()
threading.Thread(target=lambda: time.sleep(60), daemon=True).start()
ThreadPoolExecutor(1).submit(lambda: (over.wait(), time.sleep(0.2), print('pool done')))
print('main done')
main_done.set()
"""


@pytest.mark.parametrize("last", ["", "sys.exit(4)", "raise RuntimeError"])
def test_the_end_of_a_program(both, tmp_path, last):
    _, printed, _ = both(AT_ITS_END + last)
    assert printed.splitlines() == [
        "main done", "thread done", "pool done", "atexit two False", "atexit one",
    ]  # fmt: skip
    assert (tmp_path / "left-open").read_text() == "written"


LEAVES = [
    ("raise ValueError('one\\n  two')", "ValueError: one\n  two"),
    ("class Own(Exception): pass\nraise Own()", "Own"),
    ("import sys; sys.exit('no data in /data')", "no data in /data"),
    ("e = KeyError('x')\ne.add_note('look at y')\nraise e", "KeyError: 'x'\nlook at y"),
    ("raise UnicodeError('\\udcff')", "UnicodeError: \\udcff"),
    ("import sys; sys.exit(3)", None),
    (
        "import argparse; argparse.ArgumentParser().parse_args(['--epochz', '3'])",
        "program.py: error: unrecognized arguments: --epochz 3",
    ),
    ("import argparse; argparse.ArgumentParser().parse_args(['--help'])", None),
    ("print('well')", None),
]


@pytest.mark.parametrize(("text", "words"), LEAVES)
def test_a_programs_last_error_reaches_its_supervisor_in_full(tmp_path, monkeypatch, text, words):
    monkeypatch.setenv("CLUSTER_KIT_MAILBOX", str(tmp_path))
    (tmp_path / "program.py").write_text(text)
    code, _, output = run(RUNNER, "program.py", cwd=tmp_path)
    left = tmp_path / "last-words"
    assert (left.read_text().strip() if left.exists() else None) == words
    if "exit('" in text:
        assert (code, output) == (1, "error: no data in /data\n")


def test_the_important_part_of_an_error_is_not_replaced_by_the_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTER_KIT_MAILBOX", str(tmp_path))
    (tmp_path / "last-words").write_text("give it a file")
    for words, kept in (("wrapped: give it a file: so", True), ("something else", False)):
        (tmp_path / "program.py").write_text(f"raise ValueError({words!r})")
        run(RUNNER, "program.py", cwd=tmp_path)
        assert ((tmp_path / "last-words").read_text() == "give it a file") is kept


TAKES_LONG_TO_GO = """
import time
class Strategy:
    def __del__(self):
        time.sleep(60)
def train():
    kept = Strategy()
    {}
strategy = Strategy()
{}
"""


@pytest.mark.parametrize(("last", "code"), [(("", "pass"), 0), (("1 / 0", "train()"), 1)])
def test_objects_left_at_the_end_cost_no_time(tmp_path, last, code):
    program = tmp_path / "program.py"
    program.write_text(TAKES_LONG_TO_GO.format(*last))
    began = time.monotonic()
    assert run(RUNNER, program, cwd=tmp_path)[0] == code
    assert time.monotonic() - began < 30


WAITS_FOR_A_THREAD = """import os, threading, time
from pathlib import Path
told = Path(os.environ["CLUSTER_KIT_MAILBOX"], "threads")
def serve():
    while not told.exists():
        time.sleep(0.02)
threading.Thread(target=serve, name="server").start()
threading.Thread(target=time.sleep, args=[60], daemon=True, name="watcher").start()
"""


def test_a_thread_that_keeps_a_program_from_ending_is_named(tmp_path, monkeypatch):
    program = tmp_path / "program.py"
    program.write_text(WAITS_FOR_A_THREAD)
    monkeypatch.setenv("CLUSTER_KIT_MAILBOX", str(tmp_path))
    soon = "import runner; runner.THREADS_END_S = 0.2; runner.main('program.py', [])"
    monkeypatch.setenv("PYTHONPATH", str(RUNNER.parent))
    assert run("-c", soon, cwd=tmp_path) == (
        0,
        "",
        "cluster-kit: the program does not end: its main thread has ended, but not server: end it,"
        " or make it a daemon thread\n",
    )
    assert "not server: end it" in (tmp_path / "threads").read_text()


def test_subprocesses_of_a_program(both):
    code, printed, _ = both(
        "import multiprocessing, os\n"
        "def work(n): return n * n, __name__\n"
        "if __name__ == '__main__':\n"
        "    for way in ('fork', 'spawn'):\n"
        "        with multiprocessing.get_context(way).Pool(1) as pool:\n"
        "            print(pool.map(work, [2]))\n"
        "    child = os.fork()\n"
        "    if not child: raise SystemExit(9)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert (code, printed.splitlines()[-1]) == (0, "9")


def test_a_full_disk_under_stdout(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("print('x' * 10)")
    for command in ([program], [RUNNER, program]):
        with open("/dev/full", "w") as full:  # noqa: PTH123
            done = subprocess.run(
                [sys.executable, *command], stdout=full, stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONUNBUFFERED": ""},
            )  # fmt: skip
        assert done.returncode == 120
