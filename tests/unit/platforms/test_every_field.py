"""Every platform for several hosts renders each field of a task's container, or refuses it, or
documents it.

A new field fails here until it is decided: it changes the file, or a key of the manifest that sets
it is refused, or the platform's page says what applies instead.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from ipaddress import IPv4Address
from types import ModuleType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from cluster_kit.platform_table import PLATFORMS
from cluster_kit.platforms.compose.compose_file import render_hidden
from cluster_kit.platforms.container import Container, Devices, task_containers
from cluster_kit.platforms.platform import platform_of
from cluster_kit.resolved import Bounds, Cluster, Mount, Port, Ulimit
from tests.make import ROOT, cluster, problems
from tests.unit.manifests import GIVEN
from tests.unit.plan.rules import test_engine, test_kubernetes, test_slurm

Specs = tuple[Container, ...]
Change = Callable[[Any], Any]
LIMITED = {f"role.ps.{key}": {"role": {"ps": {key: value}}} for key, value in GIVEN.items()}
REFUSED = {
    "swarm": LIMITED | test_engine.REFUSED,
    "kubernetes": LIMITED | test_kubernetes.REFUSED,
    "slurm": LIMITED | test_slurm.REFUSED,
}
"""Keys by their paths, each with a manifest that has it."""
PAGES = {
    engine: " ".join((ROOT / "docs" / f"{engine}.md").read_text(encoding="utf-8").split())
    for engine in REFUSED
}
"""The text of the page on each of these engines."""
SAMPLES: dict[Any, Any] = {
    str: "more",
    int: 7,
    float: 1.25,
    tuple[str, ...]: ("more",),
    Mount: Mount("/elsewhere", "/elsewhere"),
    Port: Port(8081, 8080),
    Ulimit: Ulimit("nofile", 1024, 1024),
    Devices: Devices("nvidia", ("any", "any")),
}
CLUSTERS = {
    "compose": cluster(),
    "swarm": cluster(engine="swarm"),
    "kubernetes": cluster(engine="kubernetes", kubernetes={"claims": {"/elsewhere": "claim"}}),
    "slurm": cluster(engine="slurm", slurm={"image": "trainer.sif"}),
}
"""A cluster on each platform, with which every field is tested."""


@dataclass(frozen=True)
class Refused:
    """Only this key of a manifest sets the field, and the key is refused."""

    place: str


@dataclass(frozen=True)
class Told:
    """Words on the engine's page that say what applies instead."""

    words: str


NOT_SAID: dict[str, dict[str, Refused | Told]] = {
    "compose": {},
    "swarm": {
        "is_ready": Refused("sidecar.cache"),
        "name": Told("| names of containers | the swarm's own |"),
        "ip": Refused("task.worker-1.ip"),
        "hidden": Refused("role.ps.environment.API_TOKEN"),
        "cpu_shares": Told("as for every other task: a swarm has no CPU weights"),
        "ports": Refused("role.ps.ports"),
        "image_is_local": Told("Without `--resolve-image never` the command asks a"),
        "no_new_privileges": Told("not set: a stack file cannot ask for it"),
    },
    "kubernetes": {
        "is_ready": Refused("sidecar.cache"),
        "name": Told("the Job's name, the index and five letters |"),
        "hostname": Told("A pod's host name is the Job's name and the index."),
        "ip": Refused("task.worker-1.ip"),
        "user": Told("**Rights**: pods meet the Pod Security Standard `restricted`: user 1000"),
        "cap_add": Refused("role.ps.bandwidth"),
        "env_file": Refused("role.ps.env_file"),
        "cpu_shares": Told("| CPU weight of the evaluator | as for every other task |"),
        "ulimits": Refused("role.ps.ulimits"),
        "ports": Refused("role.ps.ports"),
        "image_is_local": Told("a registry that the nodes reach"),
        "entrypoint": Refused("image"),
        "bounds.pids": Refused("container.pids"),
        "bounds.logs": Refused("container.log_size"),
    },
    "slurm": {
        "is_ready": Refused("sidecar.cache"),
        "name": Told("there are no containers, or Apptainer's, which have no names and labels |"),
        "hostname": Told("by the names of their nodes, each task at its own port;"),
        "ip": Refused("task.worker-1.ip"),
        "user": Told("**Rights**: tasks are your processes"),
        "cap_add": Refused("role.ps.bandwidth"),
        "env_file": Refused("role.ps.env_file"),
        "labels": Told("there are no containers, or Apptainer's, which have no names and labels |"),
        "cpu_shares": Told("| CPU weight of the evaluator | as for every other task |"),
        "shm_size": Refused("role.ps.shm_size"),
        "ulimits": Refused("role.ps.ulimits"),
        "ports": Refused("role.ps.ports"),
        "image_is_local": Told("docker save -o trainer.tar"),
        "bounds.pids": Refused("container.pids"),
        "bounds.tmp": Refused("container.tmp_size"),
        "bounds.logs": Refused("container.log_size"),
        "tmpfs": Told("is a separate directory of each task on its node"),
        "init": Told("**Rights**: tasks are your processes"),
        "read_only": Told("**Rights**: tasks are your processes"),
        "no_new_privileges": Told("as Slurm starts its jobs |"),
        "cap_drop": Told("**Rights**: tasks are your processes"),
    },
}


def another(value: object, hint: Any) -> object:
    """Returns a different value of the same type."""
    if get_origin(hint) is UnionType and value is not None:
        (hint,) = (arg for arg in get_args(hint) if arg is not type(None))
    match value:
        case bool():
            return not value
        case str():
            return f"{value}more"
        case int() | float() | IPv4Address():
            return value + 1
        case tuple():
            return (*value, SAMPLES[get_args(hint)[0]])
        case Mapping() if get_args(hint)[1] is int:
            return {**value, "/more": 7}
        case Mapping():
            return {**value, **{key: f"{text}more" for key, text in value.items()}, "MORE": "more"}
        case None if get_origin(hint) is UnionType:
            (one,) = (arg for arg in get_args(hint) if arg is not type(None))
            return SAMPLES[one]
    raise AssertionError(f"how does a value of {hint} differ? SAMPLES has none")


def changes(kind: type) -> dict[str, Change]:
    """Yields a change of each single field of a frozen value, by the field's path."""
    return dict(_changes(kind, ""))


def _changes(kind: type, path: str) -> Iterator[tuple[str, Change]]:
    hints = get_type_hints(kind)
    for field in fields(kind):
        name, hint = field.name, hints[field.name]
        if is_dataclass(hint):
            for inner, change in _changes(hint, f"{path}{name}."):  # type: ignore[arg-type]
                yield inner, lambda one, n=name, c=change: replace(one, **{n: c(getattr(one, n))})
        else:
            yield (
                f"{path}{name}",
                lambda one, n=name, h=hint: replace(one, **{n: another(getattr(one, n), h)}),
            )


CHANGES = changes(Container)


def renderers(engine: str) -> list[ModuleType]:
    """Returns the modules of a platform that make its file from `task_containers`."""
    package = PLATFORMS[engine].platform.rpartition(".")[0].rpartition(".")[0]
    return [
        module
        for name, module in sorted(sys.modules.items())
        if name.startswith(f"{package}.") and hasattr(module, "task_containers")
    ]


def rendered(engine: str, made: Cluster) -> str:
    text = platform_of(engine).render(made)  # type: ignore[arg-type]
    return text + render_hidden(made) if engine == "compose" else text


def test_every_platform_is_tested() -> None:
    assert CLUSTERS.keys() == NOT_SAID.keys() == PLATFORMS.keys()
    assert REFUSED.keys() >= {name for name, fields in NOT_SAID.items() if fields}
    for engine, made in CLUSTERS.items():
        assert rendered(engine, made) and renderers(engine)


def test_a_field_changes_the_file_or_is_documented(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for field, engine in itertools.product(CHANGES, CLUSTERS):
        with subtests.test(field=field, engine=engine):
            made = CLUSTERS[engine]
            before = rendered(engine, made)

            def changed(cluster: Cluster, change: Change = CHANGES[field]) -> Specs:
                return tuple(map(change, task_containers(cluster)))

            with monkeypatch.context() as patch:
                for module in renderers(engine):
                    patch.setattr(module, "task_containers", changed)
                is_said = rendered(engine, made) != before
            instead = NOT_SAID[engine].get(field)
            assert is_said or instead is not None, (
                f"{field} changes nothing in the file for {engine}: render it, refuse the key "
                f"that asks for it, or say in docs/{engine}.md what holds instead; then enter it "
                "in NOT_SAID"
            )
            assert not (is_said and instead), f"{field} is said by now: take it out of NOT_SAID"


def test_a_field_without_effect_is_refused_or_on_the_page(subtests: pytest.Subtests) -> None:
    for engine, not_said in NOT_SAID.items():
        for field, instead in not_said.items():
            with subtests.test(engine=engine, field=field):
                if isinstance(instead, Refused):
                    keys = REFUSED[engine][instead.place]
                    refusals = {one.place: one for one in problems(engine=engine, **keys)}
                    assert refusals[instead.place].hint_text()
                else:
                    assert instead.words in PAGES[engine]


def test_every_field_can_be_set() -> None:
    own = {field.name for field in fields(Container)} - {"bounds"}
    assert CHANGES.keys() == own | {f"bounds.{field.name}" for field in fields(Bounds)}
    assert {name for own in NOT_SAID.values() for name in own} <= CHANGES.keys()
