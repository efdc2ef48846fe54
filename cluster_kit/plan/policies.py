"""Who decides that the job succeeded, and after which exit codes programs start again. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from cluster_kit.errors import HintText, Problem, Setting
from cluster_kit.manifest.schema import Manifest
from cluster_kit.programs.style import runs_program
from cluster_kit.resolved import RestartCodes, SuccessRule
from cluster_kit.roles import ROLES, Role
from cluster_kit.util.nearest import nearest
from cluster_kit.util.toml_text import dotted, to_toml

LEADS = tuple(role for role in ROLES.values() if role.leads)
"""The roles that train, and can decide that the job succeeded."""
ROUNDING = 1e-9
"""A share of 0.7 of ten tasks is seven, not eight."""


def success_of(manifest: Manifest) -> SuccessRule | None:
    """The rule of a valid manifest; None if the leader decides."""
    shares = manifest.success
    if shares == "leader":
        return None
    if not isinstance(shares, dict):
        shares = {role.name: 1 for role in LEADS if _decides(manifest, role)}
    needed = {
        role.name: math.ceil(shares[role.name] * manifest.count(role.name) - ROUNDING)
        for role in LEADS
        if role.name in shares
    }
    evaluators = [
        shares[one.name] for one in ROLES.values() if one.evaluates and one.name in shares
    ]
    return SuccessRule(to_toml(manifest.success), tuple(needed.items()), all(evaluators))


def restart_of(manifest: Manifest) -> RestartCodes:
    """The exit codes that the manifest names."""
    table = manifest.restart
    return RestartCodes(tuple(table.permanent), tuple(table.retryable))


def _decides(manifest: Manifest, role: Role) -> bool:
    return manifest.count(role.name) > 0 and runs_program(manifest, role.name)


def check_policies(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems of `success` and `[restart]`."""
    if isinstance(manifest.success, dict):
        yield from _check_shares(manifest, manifest.success)
    yield from _check_codes(manifest)


def _check_shares(manifest: Manifest, shares: dict[str, int | float]) -> Iterator[Problem]:
    reads = (*ROLES, "style", "tf1", "ps_runs")
    for name, share in shares.items():
        role, key_path, value = ROLES.get(name), dotted(["success", name]), to_toml(share)
        if role is None:
            near = nearest(name, [one.name for one in LEADS])
            hint = f"did you mean `{near}`?" if near else f"name {_names(LEADS)}"
            yield Problem(key_path, value, "no such role", hint)
        elif role.evaluates and share not in (0, 1):
            rule = f"an {name} decides with the others (1), or does not (0)"
            yield Problem(key_path, value, rule, _example(shares, name, 1))
        elif role.evaluates:
            continue
        elif not role.leads:
            rule = f"a {name} never ends by itself, so it cannot decide"
            yield Problem(key_path, value, rule, f"remove it, and name {_names(LEADS)}")
        elif not manifest.count(name):
            hint_of_role: HintText = ("remove it, or write ", Setting(name, 1))
            yield Problem(key_path, value, f"the cluster has no {name}", hint_of_role, reads)
        elif not runs_program(manifest, name):
            rule = f"under a coordinator every {name} is a server, which never ends by itself"
            hint_of_style: HintText = (
                "remove it: the chief decides, or write ",
                Setting("style", "all-tasks"),
                f" if each {name} runs the program",
            )
            yield Problem(key_path, value, rule, hint_of_style, reads)
        elif not 0 < share <= 1:
            rule = f"a share of the {name} tasks is more than 0 and at most 1"
            yield Problem(key_path, value, rule, f"{_example(shares, name, 0.5)}: half of them")
    if not any(role.name in shares for role in LEADS) and all(name in ROLES for name in shares):
        deciding = [one.name for one in LEADS if _decides(manifest, one)]
        decides = (deciding or [LEADS[0].name])[-1]
        rule = "names no task that trains, so nobody decides"
        yield Problem("success", to_toml(shares), rule, _example(shares, decides, 1), reads)


def _example(shares: Mapping[str, int | float], name: str, share: float) -> str:
    """The shares with another one of this role, as a hint."""
    known = {role: value for role, value in shares.items() if role in ROLES}
    return f"for example `success = {to_toml({**known, name: share})}`"


def _names(roles: Sequence[Role]) -> str:
    return " or ".join(f"`{role.name}`" for role in roles)


def _check_codes(manifest: Manifest) -> Iterator[Problem]:
    table = manifest.restart
    both = sorted({*_each(table.permanent)} & {*_each(table.retryable)})
    if both:
        rule = f"{_text(both)} cannot be both permanent and retryable"
        hint: HintText = "name each exit code in one of the two lists"
        yield Problem("restart.retryable", _written(table.retryable), rule, hint)
    if table.retryable and not manifest.retries:
        rule = "with `retries = 0`, no program is started again"
        hint = ("write ", Setting("retries", 3), ", or remove it")
        yield Problem("restart.retryable", _written(table.retryable), rule, hint, ("retries",))


def _each(ranges: Sequence[tuple[int, int]]) -> Iterator[int]:
    for first, last in ranges:
        yield from range(first, last + 1)


def _text(codes: Sequence[int]) -> str:
    first, more = codes[0], len(codes) - 1
    return f"exit code {first}" if not more else f"exit code {first} (and {more} more)"


def _written(ranges: Sequence[tuple[int, int]]) -> str:
    """The codes as in the manifest."""
    return to_toml([first if first == last else f"{first}-{last}" for first, last in ranges])
