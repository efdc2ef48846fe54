"""Options that several verbs have: a manifest's name, its keys, and how results are printed."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer
from typer.core import TyperCommand

from cluster_kit.cli import completion
from cluster_kit.errors import Setting, UsageError
from cluster_kit.manifest.command_line import (
    OVERRIDES,
    SET_OPTION,
    SET_VARIABLE,
    Caller,
    Kind,
    Override,
    with_another_program,
    with_bare_values,
)
from cluster_kit.platform_table import PLATFORMS
from cluster_kit.programs.catalog import DATA_SETS, PROGRAMS
from cluster_kit.run.request import DEFAULT_MANIFEST, Request
from cluster_kit.util.masking import without_shell_values
from cluster_kit.util.nearest import proposal

if TYPE_CHECKING:
    from cluster_kit.run import run
if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal[tuple(PLATFORMS)]


def _words(kind: completion.Kind) -> Callable[[Any, str], list[str]]:
    """A completion function of typer's, whose name is the kind of the words that it returns."""

    def propose(ctx: Any, incomplete: str) -> list[str]:
        return completion.words(kind, ctx.params.get("name"), incomplete)

    propose.__name__ = kind
    return propose


manifests, clusters, tasks, runs = map(_words, completion.KINDS)


def one_of(allowed: Iterable[str]) -> Callable[[str], list[str]]:
    """A completion function of typer's, whose name is the words that an option allows."""
    known = tuple(allowed)

    def propose(incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    propose.__name__ = "|".join(known)
    return propose


def values(
    texts: Mapping[str, str | None], sets: Iterable[str] = (), caller: Caller = Caller.SHELL
) -> dict[str, Any]:
    """The overridden keys and their values, as nested tables.

    Args:
        texts: the text of each option by the manifest's key, None if it was not given.
        sets: the texts of `--set`, each `key=value`.
        caller: how errors name options.
    Raises:
        UsageError: a text of `--args` or `--set` is invalid.
    """
    overridden: dict[str, Any] = {}
    if texts.get("program") is not None:
        overridden |= with_another_program()
    for override in OVERRIDES:
        text = texts.get(override.key)
        if text is not None:
            # Arguments are added to the manifest's arguments; every other key is replaced.
            key = "extra_args" if override.kind == "words" else override.key
            overridden[key] = (
                _split(text, caller) if override.kind == "words" else _VALUES[override.kind](text)
            )
    for text in sets:
        _set(overridden, text, caller)
    return overridden


def keys_of(sets: Iterable[str]) -> frozenset[str]:
    """The keys that are set by the texts of `--set`."""
    return frozenset(text.partition("=")[0].strip() for text in sets)


def _count(text: str) -> int | str:
    """A whole number; any other text stays as it is, and `load` reports it as invalid."""
    return int(text) if COUNT.fullmatch(text.strip()) else text


GPU_WORDS = ("none", "auto", "require")
COUNT = re.compile(r"[+-]?[0-9]{1,18}")
HOLE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
"""A template's `{{ … }}` or `{% … %}` (see `arguments`)."""
STAND_IN = re.compile("\ue000([0-9]+)\ue001")
"""Private-use characters that replace a hole while the text is split as by a shell."""


def _split(args: str, caller: Caller = Caller.SHELL) -> list[str]:
    """The words of a text as a shell splits it, except inside `{{ … }}`; raises UsageError."""
    holes: list[str] = []

    def hide(hole: re.Match[str]) -> str:
        holes.append(hole[0])
        return f"\ue000{len(holes) - 1}\ue001"

    try:
        words = shlex.split(HOLE.sub(hide, STAND_IN.sub("", args)))
    except ValueError as error:
        shown = without_shell_values(args)
        given = _given(caller.written("args"), shown, caller)
        raise UsageError(f"{given}: {error}", "close the quote") from None
    return [STAND_IN.sub(lambda match: holes[int(match[1])], word) for word in words]


Item = TypeVar("Item")


def chosen(
    items: Sequence[Item],
    words: Sequence[str] | None,
    option: str,
    names_of: Callable[[Item], Iterable[str]],
) -> list[Item]:
    """The items that the words name, which can be separated by commas; all if there are no words.

    Raises:
        UsageError: a word names none.
    """
    known = list(dict.fromkeys(name for item in items for name in names_of(item)))
    wanted = [word.strip() for several in words or [] for word in several.split(",")]
    for word in wanted:
        if word not in known:
            raise UsageError(f"{option} {word}: not found", proposal(word, known))
    return [item for item in items if not wanted or not set(wanted).isdisjoint(names_of(item))]


def _gpus(text: str) -> str | list[str]:
    if text in GPU_WORDS:
        return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _from_here(text: str, known: Iterable[str] = ()) -> str:
    """The absolute path: on the command line it is relative to the current directory.

    A `~` that the shell did not expand, since it was quoted, is the home directory. A known name
    and "" stay as they are.
    """
    if text in known or not text:
        return text
    try:
        return str(Path(text).expanduser().absolute())
    except RuntimeError:  # unknown user: the path will not be found
        return str(Path(text).absolute())


def _given(name: str, text: str, caller: Caller) -> str:
    """What the caller wrote: `--args 'text'`, or `ARGS='text'` for Make."""
    return f"{name}{'=' if caller is Caller.MAKE else ' '}{text!r}"


def _set(overridden: dict[str, Any], text: str, caller: Caller) -> None:
    """Set the key of `a.b=value` in nested tables.

    A value that is not TOML is a text. So is a number if the key needs a text, such as a version.
    """
    key, equals, value = text.partition("=")
    given = _given(SET_VARIABLE if caller is Caller.MAKE else SET_OPTION, text, caller)
    if not equals or not key.strip():
        hint = f"for example {caller.setting(Setting('deadline.start', 30))}"
        if caller is Caller.MAKE:  # `args=["a", "b"]` came here in two parts
            hint += "; SET is split at spaces: for a value with one, use `cluster-kit up --set`"
        raise UsageError(f"{given} is not key=value", hint)
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value
    *tables, last = key.strip().split(".")
    if type(parsed) in (int, float) and _takes_text([*tables, last]):
        parsed = value.strip()
    inner = overridden
    for table in tables:
        inner = inner.setdefault(table, {})
        if not isinstance(inner, dict):
            raise UsageError(
                f"{given}: {table} has been given a value already", f"give {table} once"
            )
    inner[last] = parsed


def _takes_text(key: list[str]) -> bool:
    from cluster_kit.manifest.load import takes_text  # the manifest's models take long to build
    from cluster_kit.platforms.platform import manifest_model

    return takes_text(key, manifest_model())


_VALUES: Mapping[Kind, Callable[[str], object]] = {
    "count": _count,
    "text": str,
    "program": lambda text: _from_here(text, PROGRAMS),
    "data": lambda text: _from_here(text, DATA_SETS),
    "file": _from_here,
    "words": _split,
    "gpus": _gpus,
    "switch": lambda _: True,
}


Reference = Annotated[
    str,
    typer.Argument(help="A manifest's path or its name in compose/.", autocompletion=manifests),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(SET_OPTION, help="Set any other key, value in TOML: --set deadline.start=30"),
]


Perhaps = Annotated[
    str,
    typer.Argument(
        help="Also check what this manifest needs: its path or its name.",
        autocompletion=manifests,
    ),
]


def requested(verb: Callable[..., None]) -> Callable[..., None]:
    """Turn a function with a `Request` into a command: manifest, overrides, the verb's own
    options."""
    return _command(verb, _parameter("manifest", Reference, DEFAULT_MANIFEST))


def perhaps_requested(verb: Callable[..., None]) -> Callable[..., None]:
    """Like `requested`, for a verb that also works without a manifest: `manifest` is then ""."""
    return _command(verb, _parameter("manifest", Perhaps, ""))


def _command(verb: Callable[..., None], reference: Parameter) -> Callable[..., None]:
    """The verb with its options.

    typer makes options from a function's signature. Setting `__signature__` (PEP 362) makes them
    from the table of overrides.
    """
    _, *verb_options = signature(verb, eval_str=True).parameters.values()

    @wraps(verb)
    def command(manifest: str, sets: list[str] | None, **given: Any) -> None:
        options = {override.key: given.pop(override.key) for override in OVERRIDES}
        texts = {
            key: " ".join(option) if option and isinstance(option, list) else option and str(option)
            for key, option in options.items()
        }
        caller = Caller.of(os.environ)
        overridden = values(texts, sets or (), caller)
        request = Request(manifest, overridden, by_set=keys_of(sets or ()), caller=caller)
        verb(request, **given)

    keys = [_parameter(override.key, _option(override)) for override in OVERRIDES]
    parameters = Signature([reference, *keys, _parameter("sets", Sets), *verb_options])
    command.__signature__ = parameters  # type: ignore[attr-defined]
    return command


def _parameter(name: str, annotation: Any, default: str | None = None) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _option(override: Override) -> Any:
    """The annotation from which typer makes the override's option."""
    names = sorted({override.option, f"--{override.key}"}, key=override.option.__ne__)
    metavar = f"[{'|'.join(PLATFORMS)}]" if override.key == "engine" else override.metavar
    known: tuple[str, ...] = GPU_WORDS if override.kind == "gpus" else ()
    if metavar and "|" in metavar:  # `[auto|coordinator|all-tasks]`
        known = tuple(metavar.strip("[]").split("|"))
    propose = one_of(known) if known else None
    option = typer.Option(*names, help=override.help, metavar=metavar, autocompletion=propose)
    if override.kind == "switch":
        return Annotated[bool | None, option]
    if override.kind == "words":  # given again, it adds more
        return Annotated[list[str] | None, option]
    return Annotated[str | None, option]


ClusterName = Annotated[
    str | None,
    typer.Argument(
        help="A cluster's name or its manifest's path, also as `--name`. Default: the only cluster "
        "of this directory that is up, else quickstart.",
        autocompletion=clusters,
    ),
]
OfCluster = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="The cluster's name or its manifest's path, also as the first word. Default: the only "
        "cluster of this directory that is up, else quickstart.",
        autocompletion=clusters,
    ),
]
OnEngine = Annotated[
    EngineName | None,
    typer.Option(
        "--engine",
        help="The platform to search. Default: this host and the platforms that it manages, or "
        "the platform of the last run.",
    ),
]
Tasks = Annotated[
    list[str] | None,
    typer.Argument(help="Only these tasks: chief-0 …", autocompletion=tasks),
]
TaskName = Annotated[str, typer.Argument(help="A task: chief-0, worker-1 …", autocompletion=tasks)]
AnyCluster = Annotated[
    str,
    typer.Argument(help="A cluster's name. Default: all clusters.", autocompletion=clusters),
]
BARE = {
    "--keep": ("always", "failed", "no"),
    "--ready": ("servers", "step"),
    "--diff": ("file", "running"),
    "--devcontainer": ("host", "inside"),
}
"""Options that may have no value, with their allowed values; the first value is the default."""


class WithBareOptions(TyperCommand):
    """A verb in which the options of BARE may have no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The words after the options; raises like its base class."""
        return super().parse_args(ctx, with_bare_values(args, BARE))


def kept(keep: str) -> run.Keep:
    """The meaning of the option `--keep`."""
    return "failed" if keep == "failed" else keep == "always"


Keep = Annotated[
    Literal["no", "always", "failed"],
    typer.Option(
        "--keep",
        metavar="[failed]",
        show_choices=False,
        show_default=False,
        help="Keep the containers after the end, to look into them; with =failed if it fails.",
    ),
]
ExitCode = Annotated[
    Literal["kit", "program"],
    typer.Option(
        "--exit-code",
        help="The exit code to return: the kit's, which tells why the run ended, or the program's.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
