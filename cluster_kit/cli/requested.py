"""The manifest and the options of every verb that takes a `Request`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from cluster_kit.cli import completion
from cluster_kit.cli.override_values import keys_of, values
from cluster_kit.manifest.command_line import Caller
from cluster_kit.manifest.overrides import OVERRIDES, SET_OPTION, Override
from cluster_kit.platforms.registry import PLATFORMS
from cluster_kit.run.request import USUAL, Request

Reference = Annotated[
    str,
    typer.Argument(
        help="A manifest's path or its name in compose/.", autocompletion=completion.manifests
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(SET_OPTION, help="Set any other key, value in TOML: --set deadline.start=30"),
]


Perhaps = Annotated[
    str,
    typer.Argument(
        help="Also check what this manifest needs: its path or its name.",
        autocompletion=completion.manifests,
    ),
]


def requested(verb: Callable[..., None]) -> Callable[..., None]:
    """The command of a verb that takes a `Request`: manifest, an option per override, own ones."""
    return _command(verb, _parameter("manifest", Reference, USUAL))


def perhaps_requested(verb: Callable[..., None]) -> Callable[..., None]:
    """The same for a verb that says something without a manifest, too: `manifest` is "" then."""
    return _command(verb, _parameter("manifest", Perhaps, ""))


def _command(verb: Callable[..., None], reference: Parameter) -> Callable[..., None]:
    """The verb with its options.

    typer makes options from a function's signature. Setting `__signature__` (PEP 362) makes them
    from the table of overrides.
    """
    _, *own = signature(verb, eval_str=True).parameters.values()

    @wraps(verb)
    def command(manifest: str, sets: list[str] | None, **given: Any) -> None:
        options = {override.key: given.pop(override.key) for override in OVERRIDES}
        texts = {key: option and str(option) for key, option in options.items()}
        request = Request(
            manifest,
            values(texts, sets or ()),
            by_set=keys_of(sets or ()),
            caller=Caller.of(os.environ),
        )
        verb(request, **given)

    keys = [_parameter(override.key, _option(override)) for override in OVERRIDES]
    parameters = Signature([reference, *keys, _parameter("sets", Sets), *own])
    command.__signature__ = parameters  # type: ignore[attr-defined]
    return command


def _parameter(name: str, annotation: Any, default: str | None = None) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _option(override: Override) -> Any:
    """The annotation from which typer makes the override's option."""
    names = sorted({override.option, f"--{override.key}"}, key=override.option.__ne__)
    metavar = f"[{'|'.join(PLATFORMS)}]" if override.key == "engine" else override.metavar
    option = typer.Option(*names, help=override.help, metavar=metavar)
    if override.kind == "switch":
        return Annotated[bool | None, option]
    return Annotated[str | None, option]
