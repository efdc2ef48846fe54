"""Rules about the code's structure that import-linter cannot check (see pyproject.toml for its
rules)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.make import ROOT
from tests.sources import nodes_of, text_of

HOST = sorted((ROOT / "cluster_kit").rglob("*.py"))
STARTS_PROGRAMS = ROOT / "cluster_kit" / "util" / "process.py"


def test_the_checks_find_modules() -> None:
    assert len(HOST) > 80
    assert STARTS_PROGRAMS in HOST


def test_only_util_process_starts_programs() -> None:
    starts = []
    for path in HOST:
        if path == STARTS_PROGRAMS or not re.search(r"\bsubprocess\b|\bos\s*\.", text_of(path)):
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom) and node.module == "subprocess":
                starts.append(f"{path.relative_to(ROOT)}:{node.lineno} imports from subprocess")
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used = f"{node.value.id}.{node.attr}"
                if used.startswith("subprocess.") or used in (
                    "os.system",
                    "os.popen",
                    "os.fork",
                    "os.execv",
                ):
                    starts.append(f"{path.relative_to(ROOT)}:{node.lineno} uses {used}")
    assert not starts


IMAGE = sorted((ROOT / "images" / "trainer").rglob("*.py"))


def test_docstrings_use_the_names_of_arguments() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {name}"
        for path in (*HOST, *IMAGE)
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in sorted(_described(node) - _arguments(node))
    ]
    assert not wrong


def _described(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Returns the names below `Args:` of a function's docstring."""
    listed = re.search(r"^Args:\n((?:    .*\n?|\n)*)", ast.get_docstring(function) or "", re.M)
    lines = re.findall(r"^    ([\w, ]+):", listed[1] if listed else "", re.M)
    return {name.strip() for line in lines for name in line.split(",")}


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    found = function.args
    others = [one for one in (found.vararg, found.kwarg) if one]
    return {one.arg for one in (*found.posonlyargs, *found.args, *found.kwonlyargs, *others)}


UNTRUSTED = ROOT / "cluster_kit" / "util" / "untrusted.py"
IN_A_POD = ROOT / "cluster_kit" / "platforms" / "kubernetes" / "inside" / "reader.py"
TOUCHES = frozenset(
    (
        *("open", "read_text", "read_bytes", "write_text", "write_bytes", "touch", "unlink"),
        *("glob", "rglob", "iterdir", "stat", "lstat", "exists", "is_file", "is_dir", "is_symlink"),
        *("mkdir", "rmdir", "chmod", "rename", "resolve", "symlink_to", "hardlink_to", "walk"),
        *("scandir", "listdir", "access", "utime", "remove", "lexists", "getsize", "getmtime"),
        *("copy", "copy2", "copyfile", "copytree", "move", "rmtree"),
    )
)
"""Functions and methods that inspect, read, write or follow a file."""
WALKS = frozenset(("rglob", "walk", "fwalk", "copytree"))
"""Functions that list directories at any depth, with links."""
MAY_TOUCH_OUTPUT = {
    "workspace.py: _prepared: run.output.mkdir": "before any task runs; none can replace output",
    "workspace.py: _prepared: os.path.lexists": "before any task runs",
    "workspace.py: _prepared: run.progress.mkdir": "before any task runs",
    "serve/site.py: run: directory.output.is_dir": "output itself, which no task can replace",
    "api/host_chief.py: present: (run.directory.output / inside.LOCK).unlink": "follows no link",
    "workspace.py: newest_run_directory: runs.glob": "names of runs, which no task can write",
    "platforms/compose/compose_platform.py: write: (file.parent / 'output').mkdir": "rendered",
    "platforms/swarm/swarm_platform.py: write: (file.parent / 'output').mkdir": "rendered",
    "cli/runs.py: _used: Path(container.output).parent.resolve": "the run's directory",
    "run/conclude.py: explained: output.is_dir": "output itself",
    "serve/start.py: _runs: path.resolve": "the run's directory",
    "cli/runs.py: _up: Path(container.output).parent.resolve": "the run's directory",
}
"""Permitted calls, each with the reason why it is harmless; an entry that is no longer needed
fails, too."""


def _is_below_output(node: ast.expr, names: set[str]) -> bool:
    """Returns whether an expression is a path of a run's output, or below it, as far as the syntax
    shows."""
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and one.attr in ("output", "progress"):
            return True
        if isinstance(one, ast.Name) and one.id in names:
            return True
        if isinstance(one, ast.Constant) and one.value in ("output", "progress", "*/output"):
            return True
    return False


def _touched(function: ast.AST) -> Iterator[ast.Call]:
    """Yields the calls that use a path below an output, or list any directory recursively."""
    names: set[str] = set()
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign) or isinstance(node.value, ast.Call):
            continue
        if _is_below_output(node.value, names):
            names |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        called, name = node.func, _name_of(node)
        of = [called.value] if isinstance(called, ast.Attribute) else []
        below = any(_is_below_output(one, names) for one in [*of, *node.args])
        if (name in TOUCHES and below) or (name in WALKS and ast.unparse(called) != "ast.walk"):
            yield node


READERS = [
    path
    for path in HOST
    if path.is_relative_to(ROOT / "cluster_kit" / "observe") or path.name == "profiles.py"
]
"""Modules that parse what tasks have written; they get paths as arguments."""
REQUESTS = ROOT / "cluster_kit" / "observe" / "user_requests.py"
"""It reads and writes a file of the run's directory to which no task can write."""


def test_modules_that_parse_output_use_that_module_for_every_file() -> None:
    assert len(READERS) > 10
    touching = [
        f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node.func)}"
        for path in READERS
        if path != REQUESTS
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and _name_of(node) in TOUCHES
    ]
    assert not touching


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def test_only_one_module_reads_and_lists_files_that_containers_can_write() -> None:
    """Links, FIFOs and endless files are handled there, and nowhere else."""
    found = set()
    for path in HOST:
        if path in (UNTRUSTED, IN_A_POD):
            continue
        for function in nodes_of(path):
            if isinstance(function, ast.FunctionDef):
                for call in _touched(function):
                    place = path.relative_to(ROOT / "cluster_kit")
                    found.add(f"{place}: {function.name}: {ast.unparse(call.func)}")
    assert found == MAY_TOUCH_OUTPUT.keys()


def _imported_at_start(module: str) -> Iterator[str]:
    """Yields the kit's modules that a module imports at its top level, without packages."""
    path = ROOT / f"{module.replace('.', '/')}.py"
    if not path.exists():
        return
    for node in ast.parse(text_of(path)).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cluster_kit"):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_render_does_not_import_the_verdict() -> None:
    """Only `--diff=running` needs it, and then imports it."""
    imported: set[str] = set()
    to_read = ["cluster_kit.cli.render"]
    while to_read:
        module = to_read.pop()
        if module not in imported:
            imported.add(module)
            to_read += _imported_at_start(module)
    assert "cluster_kit.run.prepare" in imported
    assert not {"cluster_kit.run.verdict", "cluster_kit.run.find"} & imported
