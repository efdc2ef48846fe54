"""The verbs and their options as Tab reads them: cluster_kit/cli/completion.json, made from typer's
commands."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from cluster_kit.cli import app, completion
from cluster_kit.cli.manifest_options import BARE, WithBareOptions
from cluster_kit.manifest.command_line import SET_OPTION
from cluster_kit.platforms.platform import json_schema

FILE = "cluster_kit/cli/completion.json"


def texts() -> dict[str, str]:
    """The text of the file, by its path from the root of the project."""
    app.load_all()
    root = typer.main.get_command(app.app)
    with root.make_context("cluster-kit", [], resilient_parsing=True) as context:
        tables = {"help": "", "parameters": _parameters(root, context), "commands": {}}
        for name in root.list_commands(context):
            _, command, _ = root.resolve_command(context, [name])
            tables["commands"][name] = _command(command, context)
    tables["settings"] = dict(_settings(json_schema()))
    return {FILE: f"{json.dumps(tables, indent=1)}\n"}


def _command(command: Any, parent: Any) -> dict[str, Any]:
    with command.make_context(command.name, [], parent=parent, resilient_parsing=True) as context:
        table: dict[str, Any] = {
            "help": _plain(command.get_short_help_str()),
            "parameters": _parameters(command, context),
        }
        if isinstance(command, WithBareOptions):
            table["bare"] = BARE
        if isinstance(command, TyperGroup):
            below = {name: command.get_command(context, name) for name in command.commands}
            table["commands"] = {name: _command(one, context) for name, one in below.items()}
        flags = {"hidden": command.hidden, "passes_on": context.ignore_unknown_options}
        return table | {flag: True for flag, is_set in flags.items() if is_set}


def _parameters(command: Any, context: Any) -> list[dict[str, Any]]:
    return [_parameter(one) for one in command.get_params(context)]


def _parameter(one: Any) -> dict[str, Any]:
    """The fields of `completion.Parameter` that differ from their defaults."""
    is_option = one.param_type_name == "option"
    facts: dict[str, Any] = {
        "name": one.name,
        "options": [*one.opts, *one.secondary_opts] if is_option else [],
        "help": _plain(one.help or ""),
        "flag": is_option and bool(one.is_flag or one.count),
        "many": bool(one.multiple) if is_option else one.nargs == -1,
        "hidden": one.hidden,
        "values": _values(one),
    }
    return {key: value for key, value in facts.items() if value or key == "name"}


def _settings(schema: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yields each key of the manifest that has a value of its own, with the values to propose: the
    allowed words, or else the default.

    Keys below names that a user chooses, such as `task.worker-1.memory`, are left out.
    """
    definitions = schema["$defs"]

    def walk(node: Mapping[str, Any], key: str) -> Iterator[tuple[str, list[str]]]:
        default = node.get("default")
        node = definitions[node["$ref"].rpartition("/")[2]] if "$ref" in node else node
        kinds = [node, *node.get("anyOf", ())]
        if "properties" in node:
            for name, below in node["properties"].items():
                yield from walk(below, f"{key}.{name}" if key else name)
        elif any(kind.get("type") not in (None, "object") for kind in kinds):
            words = [word for kind in kinds for word in kind.get("enum", ())]
            if any(kind.get("type") == "boolean" for kind in kinds):
                words += ["true", "false"]
            elif not words and isinstance(default, str | int | float) and default != "":
                words = [f"{default:g}" if isinstance(default, float) else str(default)]
            yield key, words

    yield from walk(schema, "")


def _values(one: Any) -> Any:
    if SET_OPTION in one.opts:
        return completion.SETTINGS
    if one._custom_shell_complete is not None:
        function = inspect.getclosurevars(one._custom_shell_complete).nonlocals["autocompletion"]
        kind = function.__name__
        if "|" in kind:
            return kind.split("|")
        assert kind in completion.KINDS, f"{one.name}: {kind}"
        return kind
    assert one.type.name not in ("filename", "file"), f"{one.name}: completion proposes no files"
    return list(map(str, getattr(one.type, "choices", ())))


def _plain(markup: str) -> str:
    """The text of a help in rich's markup, on one line."""
    return " ".join(Text.from_markup(markup).plain.split())
