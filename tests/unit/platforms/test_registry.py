"""Every engine that a manifest can name has a platform, and the core names none of them."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable

from cluster_kit.platform_table import DEFAULT, PLATFORMS
from cluster_kit.platforms import rendered_file
from cluster_kit.platforms.compose import compose_file
from cluster_kit.platforms.platform import all_platforms, manifest_model, platform_of
from cluster_kit.platforms.slurm import slurm_platform
from cluster_kit.resolved import Cluster
from cluster_kit.workspace import RENDERED, Workspace
from tests.make import ROOT
from tests.sources import nodes_of

CORE = [
    path
    for path in sorted((ROOT / "cluster_kit").rglob("*.py"))
    if not path.is_relative_to(ROOT / "cluster_kit" / "platforms")
    and path.name != "platform_table.py"
]


def test_each_platform_has_the_name_of_its_row_and_the_default_is_the_clusters() -> None:
    assert [one.name for one in all_platforms()] == list(PLATFORMS)
    assert Cluster.__dataclass_fields__["engine"].default == DEFAULT
    assert platform_of(DEFAULT).one_host


def test_a_manifest_accepts_the_names_and_tables_of_all_platforms() -> None:
    engine = manifest_model().model_json_schema()["properties"]["engine"]
    assert (engine["enum"], engine["default"]) == (list(PLATFORMS), DEFAULT)
    for one in all_platforms():
        assert one.meaning in engine["description"]
        assert (one.table() is not None) == (one.name in manifest_model().model_fields)


def named(nodes: Iterable[ast.AST], name: str) -> list[int]:
    """Returns the lines on which a platform's name is a text, an attribute or a keyword."""
    return [
        node.lineno
        for node in nodes
        if (isinstance(node, ast.Constant) and node.value == name)
        or (isinstance(node, ast.Attribute) and node.attr == name)
        or (isinstance(node, ast.keyword) and node.arg == name)
    ]


def compared(nodes: Iterable[ast.AST]) -> list[int]:
    """Returns the lines on which an attribute `engine` is compared with a text."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            asked = any(isinstance(one, ast.Attribute) and one.attr == "engine" for one in sides)
            if asked and any(isinstance(one, ast.Constant) for one in sides):
                found.append(node.lineno)
    return found


def test_both_kinds_of_lines_are_found() -> None:
    sample = ast.walk(ast.parse('if c.engine == "slurm" or c.slurm:\n    f(slurm=1)\n"slurmd"'))
    assert sorted(named(sample, "slurm")) == [1, 1, 2]
    assert compared(ast.walk(ast.parse('1\nif c.engine != "compose": ...'))) == [2]


def test_the_core_names_no_platform() -> None:
    assert len(CORE) > 100
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in CORE
        for name in PLATFORMS
        if name != DEFAULT  # also the name of the directory of manifests
        for line in named(nodes_of(path), name)
    ]
    assert not found
    assert not [path for path in CORE if compared(nodes_of(path))]


def test_the_import_rules_name_every_platform() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = {one["id"]: one for one in tomllib.loads(text)["tool"]["importlinter"]["contracts"]}
    packages = {row.platform.rpartition(".")[0].rpartition(".")[0] for row in PLATFORMS.values()}
    assert set(contracts["platforms-apart"]["modules"]) == packages
    assert set(contracts["platforms-asked-by-protocol"]["protected_modules"]) == packages


def test_the_files_of_each_platform_have_the_names_in_its_row() -> None:
    for name, row in PLATFORMS.items():
        assert platform_of(name).file(Workspace(ROOT), "demo").name == row.files[0]
        assert set(row.files) <= set(RENDERED)
    stated = {rendered_file.FILE, slurm_platform.RECORD, compose_file.HIDDEN}
    assert stated <= {file for row in PLATFORMS.values() for file in row.files}
