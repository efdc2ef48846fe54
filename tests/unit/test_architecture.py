"""One owner per outside thing, one direction between modules, two programs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.make import ROOT

KIT = sorted((ROOT / "cluster_kit").rglob("*.py"))
TRAINER = sorted((ROOT / "images" / "trainer").rglob("*.py"))

OWNERS = {
    "docker": {"engine/client"},
    "jinja2": {"util/templating"},
    "pynvml": {"host/nvidia"},
    "pydantic": {"manifest/schema", "manifest/load"},
}
PURE = (
    "errors",
    "cluster",
    "facts",
    "manifest/schema",
    "plan/addresses",
    "plan/checks",
    "plan/plan",
    "plan/tf_config",
)
PURE += (
    "labels",
    "manifest/toml_text",
    "programs/style",
    "plan/arguments",
    "util/templating",
    "plan/pins",
    "programs/requirements",
    "observe/tracebacks",
    "manifest/overrides",
    "advice/keras3",
    "advice/models",
    "advice/generators",
    "advice/evaluator",
    "advice/strategies",
    "advice/flags",
    "plan/gpus/devices",
    "plan/gpus/request",
    "plan/gpus/assign",
)
FORBIDDEN_IN_PURE = {
    "os",
    "sys",
    "time",
    "random",
    "socket",
    "subprocess",
    "docker",
    "rich",
    "typer",
}


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file imports, wherever the import stands, and its line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def _module(path: Path) -> str:
    """`util/process`, for a file of the host's program."""
    return path.with_suffix("").as_posix().partition("/cluster_kit/")[2]


def violations(files: list[Path], *packages: str, allowed: set[str] | None = None) -> list[str]:
    return sorted(
        {
            f"{path.relative_to(ROOT)}:{line} imports {name}"
            for path in files
            if _module(path) not in (allowed or set())
            for name, line in imports(path)
            if name.split(".")[0] in packages
        }
    )


def test_there_is_something_to_look_at() -> None:
    assert {"backends/compose/render", "engine/client", "util/process", "host/gather"} <= {
        _module(path) for path in KIT
    }
    assert {"supervise", "wire"} <= {path.stem for path in TRAINER}


@pytest.mark.parametrize("package", OWNERS)
def test_an_outside_package_has_its_owners(package: str) -> None:
    assert not violations(KIT, package, allowed=OWNERS[package])


def test_only_process_starts_programs() -> None:
    """Others may name `subprocess.TimeoutExpired`, which `run` raises, and nothing else of it."""
    found = []
    for path in KIT:
        if _module(path) == "util/process":
            continue
        assert not [name for name, _ in imports(path) if name.startswith("subprocess.")]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used = f"{node.value.id}.{node.attr}"
                starts = used.startswith("subprocess.") and used != "subprocess.TimeoutExpired"
                if starts or used in ("os.system", "os.popen", "os.fork", "os.execv"):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno} uses {used}")
    assert not found


def test_the_host_side_never_imports_tensorflow_nor_the_trainer() -> None:
    assert not violations(KIT, "tensorflow", "tf_keras", "keras", "trainer", "numpy")


def test_the_trainer_never_imports_the_host_side() -> None:
    packages = ("cluster_kit", "docker", "jinja2", "typer", "rich")
    assert not violations(TRAINER, *packages)


@pytest.mark.parametrize("module", PURE)
def test_a_pure_module_asks_nothing_of_the_outside(module: str) -> None:
    assert not violations([ROOT / "cluster_kit" / f"{module}.py"], *FORBIDDEN_IN_PURE)


def test_nobody_below_the_command_line_imports_it() -> None:
    below = [path for path in KIT if path.parent.name != "cli" and path.stem != "__main__"]
    names = [(path, name) for path in below for name, _ in imports(path)]
    assert not [
        f"{path.name}: {name}" for path, name in names if name.startswith("cluster_kit.cli")
    ]
    assert not violations(below, "typer")
