"""A role is a row of one table: a further role is planned, rendered and judged by its row."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, get_args

import pytest

from cluster_kit import roles
from cluster_kit.manifest.schema import Manifest, RoleTable
from cluster_kit.resolved import Cluster
from tests.make import ROOT, parse_compose
from tests.sources import nodes_of, text_of

Import = Callable[[str], Any]
FRESH: dict[str, ModuleType] = {}
"""The modules with one further role, kept for the next test."""
MANIFEST = """
format = 1
name = "reading"
reader = 2
subnet = "172.28.0.0/24"
gpus = "auto"
args = ["--readers={{ reader_hosts }}", "--count={{ num_readers }}", "--job={{ role }}"]
[role.reader]
cpus = 0.5
environment = { SHARDS = "7" }
[task.reader-1]
memory = "1g"
"""


def _ours() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] == "cluster_kit"]


@pytest.fixture
def kit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    """Imports the kit's modules with a further row in the table: readers, which are servers of the
    training cluster with their own addresses, restarts and no GPU."""
    for name in _ours():
        monkeypatch.delitem(sys.modules, name)
    if FRESH:
        sys.modules.update(FRESH)
    else:
        _add_a_reader()
    yield lambda module: import_module(f"cluster_kit.{module}")
    for name in _ours():
        FRESH[name] = sys.modules.pop(name)


def _add_a_reader() -> None:
    """Add the role before any module of the kit is imported, since most compute something from the
    table."""
    fresh = import_module("cluster_kit.roles")
    reader = fresh.Role(
        name="reader",
        description="Number of readers: 0 to 8",
        limits_description="Those of every reader",
        block=fresh.Block(range(12, 20), lambda _size: range(0)),
        plural="readers",
        most=8,
        cpu_shares=512,
    )
    fresh.ROLES = MappingProxyType({**fresh.ROLES, reader.name: reader})


def planned(kit: Import, folder: Path, text: str = MANIFEST) -> Any:
    file = folder / "reading.toml"
    file.write_text(text)
    loaded = kit("platforms.platform").load(file)
    inputs = kit("programs.resolve").resolve(loaded.manifest, folder)
    facts = kit("facts")
    gpus = tuple(facts.Gpu(i, f"GPU-{i}", "A100", 80 * 2**30) for i in range(4))
    host = facts.HostFacts(cpus=8, memory=2**36, user="1000:1000", gpus=gpus)
    images = kit("plan.plan").OwnImages("cpu:1", "gpu:1")
    return kit("platforms.platform").plan(loaded, inputs, host, images)


def test_its_tasks_are_planned(kit: Import, tmp_path: Path) -> None:
    cluster = planned(kit, tmp_path)
    assert [task.name for task in cluster.tasks][-2:] == ["reader-0", "reader-1"]
    first, second = cluster.of("reader")
    assert [str(task.ip) for task in (first, second)] == ["172.28.0.12", "172.28.0.13"]
    assert (first.command, first.gpus, first.cpus, first.memory) == (("serve",), (), 0.5, None)
    assert (second.cpus, second.memory, second.environment) == (0.5, 2**30, (("SHARDS", "7"),))
    assert [len(task.gpus) for task in cluster.of("worker")] == [1, 1]
    readers = "--readers=172.28.0.12:2222,172.28.0.13:2222"
    assert cluster.leader.command[2:] == (readers, "--count=2", "--job=chief")


def test_its_tasks_are_rendered(kit: Import, tmp_path: Path) -> None:
    text = kit("platforms.compose.compose_file").render(planned(kit, tmp_path))
    service = parse_compose(text)["services"]["reader-1"]
    config = json.loads(service["environment"]["TF_CONFIG"])
    assert config["task"] == {"type": "reader", "index": 1}
    assert list(config["cluster"]) == ["chief", "worker", "ps", "reader"]
    assert config["cluster"]["reader"] == ["172.28.0.12:2222", "172.28.0.13:2222"]
    assert service["labels"]["cluster-kit.role"] == "reader"
    assert service["restart"] == "on-failure:3"
    assert service["cpu_shares"] == 512
    assert service["environment"]["CUDA_VISIBLE_DEVICES"] == "-1"
    assert "reader-1" in service["environment"]["CLUSTER_KIT_SERVERS"].split(",")


@pytest.mark.parametrize(
    ("line", "key_path", "rule"),
    [
        ("reader = 9", "reader", "a cluster has at most 8 tasks of the role reader"),
        ('reader = "x"', "reader", "must be a whole number"),
        ("role.reader.gpus = [0]", "role.reader.gpus", "a reader never gets a GPU"),
        ("task.reader-0.cpus = 1", "task.reader-0", "no such task: reader = 0"),
        ('subnet = "172.28.0.0/26"\nreader = 1', "subnet", "too small for its tasks'"),
    ],
)
def test_its_mistakes_are_reported(
    kit: Import, tmp_path: Path, line: str, key_path: str, rule: str
) -> None:
    with pytest.raises(kit("errors").ManifestError) as refused:
        planned(kit, tmp_path, f'format = 1\nname = "reading"\n{line}\n')
    (problem,) = refused.value.problems
    assert problem.key_path == key_path
    assert problem.rule.startswith(rule)


class Story:
    """The state of a cluster, built from events."""

    def __init__(self, kit: Import, cluster: Cluster) -> None:
        self.kit, self.cluster = kit, cluster
        self.seen = kit("observe.state").RunState.of(cluster)
        for task in cluster.tasks:
            self.happens(0.0, "start", task.name)

    def happens(self, time: float, action: str, task: str, code: int | None = None) -> Story:
        event = self.kit("platforms.docker.docker_engine").Event(time, action, task, code)
        self.seen = self.seen.with_event(event)
        return self

    @property
    def verdict(self) -> Any:
        return self.kit("run.verdict").judge(self.cluster, self.seen, "ended")


def test_its_tasks_are_judged(kit: Import, tmp_path: Path) -> None:
    cluster = planned(kit, tmp_path)
    well = Story(kit, cluster).happens(9.0, "die", "chief-0", 0)
    assert (well.verdict.success, well.verdict.reason) == (True, "finished")
    killed = Story(kit, cluster).happens(8.0, "die", "reader-1", 137)
    killed.happens(9.0, "die", "chief-0", 1)
    assert (killed.verdict.success, killed.verdict.blame) == (False, "reader-1")
    assert "exit code 137 (killed by signal 9)" in killed.verdict.message
    revived = Story(kit, cluster).happens(8.0, "die", "reader-1", 137)
    revived.happens(9.0, "start", "reader-1").happens(60.0, "die", "chief-0", 1)
    assert revived.verdict.blame == "chief-0"


def test_its_tasks_end_after_a_success_like_those_of_any_server(
    kit: Import, tmp_path: Path
) -> None:
    story = Story(kit, planned(kit, tmp_path)).happens(9.0, "die", "chief-0", 0)
    assert not story.seen.is_done("reader-0")
    assert story.happens(9.5, "start", "reader-0").seen.is_done("reader-0")


def test_its_key_is_in_the_schema(kit: Import) -> None:
    schema = kit("platforms.platform").json_schema()
    assert schema["properties"]["reader"]["description"] == "Number of readers: 0 to 8"
    assert "reader" in schema["$defs"]["RoleTable"]["properties"]


def test_the_kits_own_table_has_these_roles() -> None:
    counted = ["chief", "worker", "ps", "evaluator", "data_worker"]
    assert list(roles.ROLES) == [*counted[:4], "data_dispatcher", "data_worker"]
    assert list(RoleTable.model_fields) == list(roles.ROLES)
    assert list(Manifest.model_fields)[2:7] == counted


def test_the_chiefs_job_names_are_those_that_a_manifest_accepts() -> None:
    assert get_args(Manifest.model_fields["chief_job"].annotation) == roles.CHIEF.jobs


KEYS = {"manifest/command_line.py": "the keys that have options",
        "resolved.py": "TensorFlow's jobs",
        "manifest/schema.py": "TensorFlow's jobs", "roles.py": "the table",
        "cli/app.py": "the verb `ps`", "cli/predict.py": "a column of a table",
        "platforms/compose/compose_platform.py": "the verb `ps` of Compose",
        "predict/profile.py": "keys of a profile", "predict/plan.py": "keys of an answer",
        "predict/simulate.py": "simulated tasks", "predict/limits.py": "simulated tasks",
        }  # fmt: skip
"""Modules in which a text may be a role's name, and its meaning there."""


def test_no_other_module_names_a_role() -> None:
    package = ROOT / "cluster_kit"
    name = re.compile(rf"""["'}}](?:{"|".join(roles.ROLES)})["'{{]""")
    spelt = {
        f"{path.relative_to(package)}:{node.lineno} {node.value!r}"
        for path in package.rglob("*.py")
        if name.search(text_of(path))
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and node.value in roles.ROLES
        if str(path.relative_to(package)) not in KEYS
    }
    assert not spelt, "ask the table of cluster_kit/roles.py what is so of a role"


def test_no_two_address_blocks_of_the_table_overlap() -> None:
    for blocks in (
        [role.block.wide for role in roles.ROLES.values()],
        *([role.block.narrow(2**bits) for role in roles.ROLES.values()] for bits in range(3, 8)),
    ):
        offsets = [offset for block in blocks for offset in block]
        assert len(offsets) == len(set(offsets))
    growing = [role.block.grows for role in roles.ROLES.values() if role.block.grows]
    numbers = [first + step * turn for first, step in growing for turn in range(64)]
    assert len(numbers) == len(set(numbers))
    assert min(numbers) > 0
