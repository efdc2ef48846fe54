"""Arguments and options that several verbs share, and how they become overrides."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from cluster_kit.errors import UsageError
from cluster_kit.programs.resolve import BUILT_IN_PROGRAMS, DATA_SETS
from cluster_kit.run.prepare import Request

Reference = Annotated[str, typer.Argument(help="A manifest's path, or its name in compose/.")]
ClusterName = Annotated[str, typer.Argument(help="A cluster's name, or its manifest's path.")]
Chief = Annotated[
    str | None, typer.Option("--chief", help="Number of chiefs: 0 or 1.", metavar="INTEGER")
]
Workers = Annotated[
    str | None, typer.Option("--workers", help="Number of workers.", metavar="INTEGER")
]
Ps = Annotated[
    str | None, typer.Option("--ps", help="Number of parameter servers.", metavar="INTEGER")
]
Style = Annotated[
    str | None,
    typer.Option(
        "--style",
        help="Who runs the program: the chief alone, or the workers, too.",
        metavar="[auto|coordinator|all-tasks]",
    ),
]
Name = Annotated[str | None, typer.Option("--name", help="Run it under another name.")]
Program = Annotated[
    str | None,
    typer.Option("--program", help="Run this program instead (without args and evaluator)."),
]
Args = Annotated[
    str | None, typer.Option("--args", help="Further arguments; the last of a flag wins.")
]
Requirements = Annotated[
    str | None, typer.Option("--requirements", help="A file of pip requirements for the image.")
]
Data = Annotated[str | None, typer.Option("--data", help="Data set of the image, or directory.")]
Gpus = Annotated[str | None, typer.Option("--gpus", help="none, auto, or ids: 0,1 or GPU-<uuid>.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any other key, as TOML: --set deadline.start=30"),
]
Json = Annotated[bool, typer.Option("--json", help="Print facts as JSON on stdout.")]


def ordered(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb on a `Request` as a command: a manifest, what overrides its keys, the verb's options.

    typer reads signatures, so the command gets one that holds all of them.
    """
    shared = signature(overrides, eval_str=True).parameters
    _, *own = signature(verb, eval_str=True).parameters.values()

    @wraps(verb)
    def command(manifest: str, **given: Any) -> None:
        request = Request(manifest, overrides(**{name: given.pop(name) for name in shared}))
        verb(request, **given)

    by_name = Parameter.KEYWORD_ONLY
    reference = Parameter("manifest", by_name, default="quickstart", annotation=Reference)
    shown = Signature([reference, *shared.values(), *own])
    command.__signature__ = shown  # type: ignore[attr-defined]
    return command


def overrides(
    *,
    chief: Chief = None,
    workers: Workers = None,
    ps: Ps = None,
    style: Style = None,
    name: Name = None,
    program: Program = None,
    args: Args = None,
    requirements: Requirements = None,
    data: Data = None,
    gpus: Gpus = None,
    sets: Set = None,
) -> dict[str, Any]:
    """The keys that the command line gives, as `load` lays them over the file."""
    given: dict[str, Any] = {"chief": _count(chief), "worker": _count(workers), "ps": _count(ps)}
    given |= {"style": style, "name": name, "gpus": _gpus(gpus)}
    if program is not None:
        # The manifest's arguments, requirements and evaluator belong to the manifest's program.
        given |= {"program": _from_here(program, BUILT_IN_PROGRAMS), "args": [], "evaluator": 0}
        given["requirements"] = ""
    if requirements is not None:
        given["requirements"] = _from_here(requirements, ())
    if data is not None:
        given["data"] = _from_here(data, DATA_SETS)
    if args is not None:
        given["extra_args"] = _split(args)
    found = {key: value for key, value in given.items() if value is not None}
    for text in sets or []:
        _lay(found, text)
    return found


def _count(text: str | None) -> int | str | None:
    """What is no number goes on as it is: `load` says what is wrong with it."""
    return int(text) if text and COUNT.fullmatch(text) else text


COUNT = re.compile(r"[+-]?[0-9]{1,18}")
HOLE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
"""A template's hole or tag (see `arguments`)."""
STAND_IN = re.compile("\ue000([0-9]+)\ue001")
"""What stands for a hole while a shell's rules split the text: characters that nobody types."""


def _split(args: str) -> list[str]:
    """Words as a shell makes them; blanks and quotes inside of `{{ … }}` part nothing."""
    holes: list[str] = []

    def hide(hole: re.Match[str]) -> str:
        holes.append(hole[0])
        return f"\ue000{len(holes) - 1}\ue001"

    try:
        words = shlex.split(HOLE.sub(hide, STAND_IN.sub("", args)))
    except ValueError as error:
        raise UsageError(f"--args {args!r}: {error}", "close the quote") from None
    return [STAND_IN.sub(lambda found: holes[int(found[1])], word) for word in words]


def _gpus(text: str | None) -> object:
    if text is None or text in ("none", "auto"):
        return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _from_here(text: str, known: tuple[str, ...]) -> str:
    """A path on the command line is seen from the current directory, not from the manifest."""
    return text if text in known or not text else str(Path(text).absolute())


def _lay(found: dict[str, Any], text: str) -> None:
    """`a.b=value`, the value in TOML or else taken as a string."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set {text!r} is no key=value", "e.g. --set deadline.start=30")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value
    *tables, last = key.strip().split(".")
    inner = found
    for table in tables:
        inner = inner.setdefault(table, {})
        if not isinstance(inner, dict):
            raise UsageError(
                f"--set {text!r}: {table} has been given a value already", f"give {table} once"
            )
    inner[last] = parsed
