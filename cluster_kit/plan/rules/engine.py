"""Rules: what the chosen engine can say; what it cannot is refused by its key. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.arguments import names_in
from cluster_kit.plan.nodes import CONSTRAINT
from cluster_kit.plan.rules.kubernetes import check_kubernetes
from cluster_kit.plan.rules.slurm import check_slurm
from cluster_kit.problem import Cure, Problem, Setting
from cluster_kit.util.masking import looks_secret
from cluster_kit.util.toml_text import to_toml

LONGEST_NAME = 39
"""Of a cluster on a swarm: the name of a service there has at most 63 characters."""
REQUIRE = Setting("gpus", "require")
HERE = ("take it out, or run it on this host: ", Setting("engine", "compose"))


def check_engine(manifest: Manifest) -> Iterator[Problem]:
    """Yields what the manifest's engine cannot do."""
    if manifest.engine == "swarm":
        yield from _on_swarm(manifest)
    elif manifest.engine == "kubernetes":
        yield from check_kubernetes(manifest)
    elif manifest.engine == "slurm":
        yield from check_slurm(manifest)
    else:
        yield from _on_one_host(manifest)


def _on_one_host(manifest: Manifest) -> Iterator[Problem]:
    cure = ("take it out, or write ", Setting("engine", "swarm"))
    for table, limits in manifest.limits_by_table():
        if limits.nodes is not None:
            rule = "Docker Compose runs all tasks on this host"
            yield Problem(f"{table}.nodes", to_toml(limits.nodes), rule, cure, ("engine",))
    if manifest.network.encrypted:
        rule = "Docker Compose runs all tasks on this host: nothing leaves it"
        yield Problem("network.encrypted", "true", rule, cure, ("engine",))


def _on_swarm(manifest: Manifest) -> Iterator[Problem]:
    if len(manifest.name) > LONGEST_NAME:
        rule = f"a cluster's name has at most {LONGEST_NAME} characters on a swarm"
        example = Setting("name", manifest.name[:LONGEST_NAME].rstrip("-"))
        yield Problem("name", to_toml(manifest.name), rule, ("for example ", example), ("engine",))
    if manifest.addressing == "ip" and "addressing" in manifest.model_fields_set:
        rule = "a swarm gives a task another address at each start"
        yield _refused("addressing", '"ip"', rule, ("write ", Setting("addressing", "name")))
    if manifest.gpus not in ("none", "require"):
        rule = "which GPUs the nodes have is not known here: a swarm chooses them by their number"
        cure: Cure = ("write ", REQUIRE, " (and `gpus_per_worker`), or ", Setting("gpus", "none"))
        yield _refused("gpus", to_toml(manifest.gpus), rule, cure)
    if manifest.share_gpus and manifest.gpus != "none":
        rule = "a swarm gives a GPU to one task at a time"
        cure = ("write ", Setting("share_gpus", False))
        yield _refused("share_gpus", "true", rule, cure)
    for number, argument in enumerate(manifest.args):
        if "ip" in names_in([argument]):
            cure = "write {{ name }}: a task is found by its name there"
            rule = "a swarm gives a task another address at each start"
            yield _refused(f"args.{number}", to_toml(argument), rule, cure)
    for name in manifest.sidecar:
        yield _refused(f"sidecar.{name}", "", "the kit runs sidecars beside tasks of one host only")
    for name, task in manifest.task.items():
        if task.ip is not None:
            rule = "a swarm gives a task another address at each start"
            yield _refused(f"task.{name}.ip", to_toml(task.ip), rule)
    yield from _in_tables(manifest)


def _in_tables(manifest: Manifest) -> Iterator[Problem]:
    """Yields what a swarm cannot say in `[role.…]` and `[task.…]`."""
    for table, limits in manifest.limits_by_table():
        if limits.gpus:
            rule = "which GPUs the nodes have is not known here; workers get theirs by their number"
            yield _refused(f"{table}.gpus", to_toml(limits.gpus), rule, ("write ", REQUIRE))
        if limits.ports:
            rule = "a swarm publishes ports at every address of its nodes, not at 127.0.0.1"
            yield _refused(f"{table}.ports", to_toml(limits.ports), rule)
        for key in filter(looks_secret, limits.environment):
            rule = "it looks like a secret, and stack.yaml would have it in clear"
            instead = f'write `secrets = ["{key}"]` there instead, and export the variable'
            yield _refused(f"{table}.environment.{key}", "", rule, instead)
        parts = [part.strip() for part in (limits.nodes or "==").split(",")]
        wrong = [part for part in parts if not CONSTRAINT.fullmatch(part)]
        if limits.nodes is not None and wrong:
            rule = "not `label==value` or `label!=value`"
            cure = ("for example ", Setting(f"{table}.nodes", "disk==ssd"))
            yield _refused(f"{table}.nodes", to_toml(limits.nodes), rule, cure)


def _refused(place: str, value: str, rule: str, cure: Cure = HERE) -> Problem:
    return Problem(place, value, rule, cure, ("engine",))
