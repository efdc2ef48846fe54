"""Measures how much the unit tests notice: makes random changes in cluster_kit, and counts how many
of them make a test fail. `make mutate` prints the changes that no test notices.

It works in a copy of the tree. One run of the tests without a change records which functions each
test file calls. For each change, only test files that call the changed function run, the fastest
first, up to `BUDGET_S` seconds together.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "cluster_kit"
TESTS = ("tests/unit", "tests/docs", "tests/golden", "tests/trainer", "tests/ci")
MARKS = "not processes and not draws and not alone"
BUDGET_S = 40.0
RECORD = "MUTATE_RECORD"
"""The file to which the run without a change writes the functions that each test file calls."""
FLIPPED = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    """One expression of a file, and its replacement."""

    path: str
    function: str
    line: int
    start: int
    end: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text} -> {self.instead}"

    def applied(self, source: str) -> str:
        lines = source.splitlines(keepends=True)
        line = lines[self.line - 1].encode()
        changed = line[: self.start] + self.instead.encode() + line[self.end :]
        lines[self.line - 1] = changed.decode()
        return "".join(lines)


def mutations_of(path: str, source: str) -> Iterator[Mutation]:
    """Yields each possible change of an expression on a single line."""
    tree = ast.parse(source)
    left_out = set(_annotations(tree))

    def walk(node: ast.AST, function: str) -> Iterator[Mutation]:
        if node in left_out:
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        expression = node.value if isinstance(node, ast.Return) else node
        if isinstance(expression, ast.expr) and expression.lineno == expression.end_lineno:
            text = ast.get_source_segment(source, expression) or ""
            for instead in _instead(node, text):
                yield Mutation(path, function, expression.lineno, expression.col_offset,
                               expression.end_col_offset or 0, text, instead)  # fmt: skip
        # Parts of an f-string have no positions before Python 3.12.
        if not isinstance(node, ast.JoinedStr):
            for child in ast.iter_child_nodes(node):
                yield from walk(child, function)

    yield from walk(tree, "")


def _annotations(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if (annotation := getattr(node, name, None)) is not None:
                yield annotation


def _instead(node: ast.AST, text: str) -> Iterator[str]:
    match node:
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield "None"
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            yield f"({ast.unparse(left)} {FLIPPED[type(operator)]} {ast.unparse(right)})"
        case ast.BoolOp(op=operator, values=values):
            word = " or " if isinstance(operator, ast.And) else " and "
            yield "(" + word.join(f"({ast.unparse(value)})" for value in values) + ")"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"bool({ast.unparse(operand)})"
        case ast.IfExp(test=test, body=body, orelse=otherwise):
            unparsed = [ast.unparse(part) for part in (body, test, otherwise)]
            yield "({} if not ({}) else {})".format(*unparsed)
        case ast.Constant(value=bool() as truth):
            yield str(not truth)
        case ast.Constant(value=int() | float() as number):
            yield str(number + 1)


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def drawn(root: Path, seed: int, count: int) -> list[Mutation]:
    """Returns `count` places, at most one per line; the same for the same seed and tree."""
    by_line: dict[tuple[str, int], list[Mutation]] = {}
    for file in sorted((root / PACKAGE).rglob("*.py")):
        path = str(file.relative_to(root))
        for mutation in mutations_of(path, file.read_text()):
            by_line.setdefault((path, mutation.line), []).append(mutation)
    chance = random.Random(seed)
    lines = chance.sample(sorted(by_line), min(count, len(by_line)))
    return [chance.choice(by_line[line]) for line in lines]


class Recorder:
    """A plugin of pytest that records which functions of the package each test file calls."""

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, ""
        self._called: dict[str, set[str]] = {}
        self._took: dict[str, float] = {}
        self._failed: list[str] = []
        self._keys: dict[CodeType, str] = {}
        self._inside = str(ROOT / PACKAGE) + os.sep
        sys.setprofile(self._note)
        threading.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if (key := self._keys.get(code)) is None:
            ours = code.co_filename.startswith(self._inside)
            name = f"{os.path.relpath(code.co_filename, ROOT)}::{code.co_name}"
            key = self._keys[code] = name if ours else ""
        if key:
            self._called.setdefault(self._file, set()).add(key)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._file = nodeid.partition("::")[0]
        if sys.getprofile() != self._note:
            sys.setprofile(self._note)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._took[self._file] = self._took.get(self._file, 0.0) + report.duration
        if report.failed:
            self._failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        sys.setprofile(None)
        called = {file: sorted(keys) for file, keys in self._called.items() if file}
        record = {"called": called, "took": self._took, "failed": self._failed}
        self._path.write_text(json.dumps(record))


def pytest_configure(config: pytest.Config) -> None:
    if record := os.environ.get(RECORD):
        config.pluginmanager.register(Recorder(Path(record)))


def run(root: Path, *words: str, bound_s: float | None = None, **variables: str) -> int | None:
    """Returns pytest's exit code in a copy of the tree; None if it took too long."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", MARKS, "-p", "no:cacheprovider"]
    process = subprocess.Popen(
        [*command, *words], cwd=root, env={**os.environ, **variables}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        return process.wait(timeout=bound_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()


def copied(to: Path) -> None:
    """Copy all files that Git tracks or would add, as they are now."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, done.stdout.split("\0")):
        if os.path.lexists(ROOT / name):  # a link may point to a directory
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name, follow_symlinks=False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--seed", type=int, default=25)
    parser.add_argument("--count", type=int, default=60)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        root = Path(folder).resolve()
        copied(root)
        record = root / "called.json"
        begun = time.monotonic()
        run(root, "--maxfail=0", "-p", "tests.mutate", *TESTS, MUTATE_RECORD=str(record))
        if not record.is_file():
            sys.exit("the tests do not run in a copy of the tree: pytest ended without a record")
        found = json.loads(record.read_text())
        print(f"recorded in {time.monotonic() - begun:.0f} s", flush=True)
        unnoticed = 0
        mutations = drawn(root, chosen.seed, chosen.count)
        for mutation in mutations:
            outcome = _tried(root, mutation, found)
            unnoticed += outcome.startswith("not ")
            print(f"{outcome:>12}  {mutation}", flush=True)
    caught = len(mutations) - unnoticed
    print(f"{caught} of {len(mutations)} mutations are noticed (seed {chosen.seed})")


def _tried(root: Path, mutation: Mutation, found: dict[str, Any]) -> str:
    """Returns the result of one change. Code at a module's top level runs on import, so all files
    that call the module run it."""
    key = f"{mutation.path}::{mutation.function}"
    called: dict[str, list[str]] = found["called"]
    took: dict[str, float] = found["took"]
    files: list[str] = []
    seconds = 0.0
    for file in sorted(called, key=lambda file: (took[file], file)):
        calls_it = any(k == key if mutation.function else k.startswith(key) for k in called[file])
        if calls_it and (not files or seconds + took[file] <= BUDGET_S):
            files.append(file)
            seconds += took[file]
    if not files:
        return "not run"
    path = root / mutation.path
    source = path.read_text()
    path.write_text(mutation.applied(source))
    try:
        left_out = [f"--deselect={test}" for test in found["failed"]]
        code = run(root, *left_out, *files, bound_s=30.0 + 3 * seconds)
    finally:
        path.write_text(source)
    return {0: "not noticed", 5: "not run", None: "took too long"}.get(code, "noticed")


if __name__ == "__main__":
    main()
