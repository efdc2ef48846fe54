"""Exit codes: one page lists them all, and one failure has one code in every program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from trees import nodes_of, tree_of

from trainer.agent import errors
from trainer.contract import endings

PACKAGE = Path(errors.__file__).parents[1]
CODES = {name: value for name, value in vars(endings).items() if name.startswith("EXIT_")}


def trees(naming: str) -> Iterator[tuple[str, ast.Module]]:
    """Returns the modules that contain this name."""
    for file in sorted(PACKAGE.rglob("*.py")):
        if naming in file.read_text(encoding="utf-8"):
            yield str(file.relative_to(PACKAGE)), tree_of(file)


def errors_of(tree: ast.Module) -> Iterator[tuple[ast.ClassDef, ast.expr]]:
    """Returns the classes with their own exit code, and the code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "exit_code":
                    yield node, line.value


def test_every_errors_exit_code_is_on_the_page():
    found = [(name, kind.name, ast.unparse(code))
             for name, tree in trees("exit_code") for kind, code in errors_of(tree)]  # fmt: skip
    assert len(found) >= 6
    assert [one for one in found if one[2] not in CODES] == []


def test_no_other_module_defines_an_exit_code():
    """Except injected/, which imports nothing of the package: its copies are compared here."""
    made = {
        (name, ast.unparse(node.targets[0]), ast.literal_eval(node.value))
        for name, tree in trees("EXIT_")
        for node in tree.body
        if isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]).startswith("EXIT_")
        and isinstance(node.value, ast.Constant)
        and name != "contract/endings.py"
    }
    assert made == {
        ("agent/injected/tensorflow_devices.py", "EXIT_GPU_MISSING", endings.EXIT_GPU_MISSING),
        ("agent/injected/runner.py", "EXIT_STDOUT_LOST", endings.EXIT_STDOUT_LOST),
    }


def test_there_is_one_error_for_a_loss_that_is_not_finite():
    kinds = [(str(file.relative_to(PACKAGE)), node.name)
             for file in sorted(PACKAGE.rglob("*.py"))
             if "Diverged" in file.read_text(encoding="utf-8") for node in nodes_of(file)
             if isinstance(node, ast.ClassDef) and node.name == "Diverged"]  # fmt: skip
    assert kinds == [("programs/training/program.py", "Diverged")]
