"""The verb doctor: checks whether this host can run clusters, or a given manifest's cluster."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from rich.table import Table
from rich.text import Text

from cluster_kit.cli import manifest_options
from cluster_kit.cli.app import app, current_host, out, print_json
from cluster_kit.cli.manifest_options import perhaps_requested
from cluster_kit.errors import HostError, UsageError
from cluster_kit.machine.host_facts import gather
from cluster_kit.platform_table import DEFAULT, PLATFORMS
from cluster_kit.platforms.engine import Engine
from cluster_kit.platforms.platform import Check, Platform, platform_of
from cluster_kit.run.companions import left_behind
from cluster_kit.run.doctor import check_host, check_strangers
from cluster_kit.run.prepare import prepare
from cluster_kit.run.request import DEFAULT_MANIFEST, Request
from cluster_kit.workspace import here

_MARKS = {"ok": ("ok", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "bold red")}


@app.command()
@perhaps_requested
def doctor(request: Request, *, json_: manifest_options.Json = False) -> None:
    """Check this host (engine, disk, memory, GPUs, network …), with a fix for each problem."""
    manifest = request.manifest
    if not manifest:
        _refuse_what_is_of_a_manifest(request)
    engine = request.overrides.get("engine", DEFAULT)
    platform = platform_of(engine if engine in PLATFORMS else DEFAULT)
    if error := platform.not_run(manifest or "NAME"):
        raise error
    if platform.by_docker:
        checks = _of_this_host(request, platform)
    else:
        checks = (
            _checks(request, None, platform) if manifest else platform.checks(current_host(), None)
        )
    if json_:
        print_json([check.as_json() for check in checks])
    else:
        _print_checks(checks)
    if any(check.state == "fail" for check in checks):
        raise typer.Exit(HostError.exit_code)


def _refuse_what_is_of_a_manifest(request: Request) -> None:
    """Raise UsageError for an option that needs a manifest, or an unknown engine."""
    unused = [key for key in request.overrides if key != "engine"]
    if unused:
        named = ", ".join(map(request.caller.written, unused))
        raise UsageError(
            f"{named} without a manifest: there is no cluster to check",
            f"name one: `cluster-kit doctor {DEFAULT_MANIFEST} …`",
        )
    on = request.overrides.get("engine", DEFAULT)
    if on not in PLATFORMS:
        hint = f"one of {', '.join(PLATFORMS)}"
        raise UsageError(f"--engine {on}: no such engine", hint)


def _of_this_host(request: Request, platform: Platform) -> list[Check]:
    try:
        engine = current_host().connect()
    except HostError as error:
        return [Check("engine", "fail", error.message, error.hint)]
    return _checks(request, engine, platform)


def _checks(request: Request, engine: Engine | None, platform: Platform) -> list[Check]:
    """The checks of this host, and of a manifest's needs if one is named."""
    if not request.manifest:
        facts = gather(current_host(), engine)
        results = [
            *check_host(current_host(), facts, None),
            *check_strangers(current_host(), facts),
            *_left_behind(),
        ]
        return results if platform.one_host else results + _of_platform(platform)
    workspace = here()
    prepared = prepare(current_host(), request, workspace, engine)
    checks = check_host(current_host(), prepared.facts, prepared.cluster)
    platform = platform_of(prepared.cluster.engine)
    if platform.by_docker:
        checks += check_strangers(current_host(), prepared.facts)
    if not _failed(checks, platform.name):
        checks += platform.trials(prepared.cluster, workspace.runs(prepared.cluster.name))
    return checks + [
        Check(
            "program",
            "warn",
            f"{hint.location}: {hint.what}\n{hint.rule}".rstrip(),
            str(hint.fix),
        )
        for hint in prepared.hints
    ]


def _left_behind() -> list[Check]:
    names = left_behind(current_host())
    message = (
        f"{', '.join(names)} ended when this host or its engine stopped, and no command removed it"
    )
    hint = f"`docker rm {' '.join(names)}`"
    return [Check("tensorboard", "warn", message, hint)] if names else []


def _of_platform(platform: Platform) -> list[Check]:
    checks = platform.checks(current_host(), None)
    return checks if _failed(checks, platform.name) else checks + platform.trials(None, None)


def _failed(checks: Sequence[Check], name: str) -> bool:
    return any((check.name, check.state) == (name, "fail") for check in checks)


def _print_checks(checks: list[Check]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2))
    for check in checks:
        mark, style = _MARKS[check.state]
        hint = f"\n→ {check.hint}" if check.hint else ""
        table.add_row(Text(mark, style=style), check.name, Text(check.found + hint))
    out.print(table)
