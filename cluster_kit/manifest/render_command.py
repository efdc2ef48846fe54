"""The command line that renders a manifest with its overrides, in one spelling. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cluster_kit.manifest.overrides import OVERRIDES, SET_OPTION, Override
from cluster_kit.roles import ROLES
from cluster_kit.util.masking import MASK, looks_secret
from cluster_kit.util.toml_text import to_toml

HOLE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
"""A template's `{{ … }}` or `{% … %}` in an argument."""
DEEPEST = 20


def render_command(manifest: Path, overrides: Mapping[str, Any], root: Path) -> str:
    """Returns what to type in the folder `root` to render this manifest with these overrides.

    However it was typed, the same manifest and overrides give the same text. A value that looks
    like a secret is masked: the text becomes part of files.
    """
    words = ["cluster-kit", "render", _reference(manifest, root)]
    tables = {key for key, value in overrides.items() if isinstance(value, dict)}
    for override in OVERRIDES:
        key = "extra_args" if override.kind == "words" else override.key
        if key in overrides.keys() - tables and not _implied(override.key, overrides):
            words += _words(override, overrides[key], root)
    known = {override.key for override in OVERRIDES if override.kind != "words"} - tables
    rest = {key: value for key, value in overrides.items() if key not in (*known, "extra_args")}
    for key, value in sorted(_flat(rest)):
        if not _implied(key, overrides):
            secret = looks_secret(key.rpartition(".")[2])
            words += [SET_OPTION, f"{key}={MASK if secret else to_toml(value, DEEPEST)}"]
    return shlex.join(words)


def below(path: Path, root: Path) -> str:
    """The path as it is named in `root`: relative if it is below it, else absolute."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _reference(manifest: Path, root: Path) -> str:
    named = manifest == root / "compose" / f"{manifest.stem}.toml"
    return manifest.stem if named else below(manifest, root)


def _implied(key: str, overrides: Mapping[str, Any]) -> bool:
    """Whether `--program` alone sets this key to this value."""
    implied: dict[str, Any] = {role.name: 0 for role in ROLES.values() if role.sidecar}
    implied |= {"args": [], "requirements": "", "tf1": False}
    return (
        "program" in overrides
        and key in implied
        and overrides.get(key) == implied[key]
        and not (key == "args" and "extra_args" in overrides)
    )


def _words(override: Override, value: Any, root: Path) -> list[str]:
    """The option with this value; a switch has no value, and can only be on."""
    if override.kind != "switch":
        return [override.option, _text(override, value, root)]
    return [override.option] if value is True else [SET_OPTION, f"{override.key}={to_toml(value)}"]


def _text(override: Override, value: Any, root: Path) -> str:
    """The text of an option that gives this value."""
    if override.kind == "words":
        return " ".join(map(quoted, value))
    if override.kind == "gpus" and not isinstance(value, str):
        return ",".join(value)
    if override.kind in ("program", "data", "file") and Path(value).is_absolute():
        return below(Path(value), root)
    return str(value)


def quoted(word: str) -> str:
    """The word as a shell quotes it, but for what is inside of a template's braces."""
    holes = HOLE.findall(word)
    plain = HOLE.sub("", word)
    if holes and shlex.quote(plain) in (plain, "''"):
        return word
    quoted = shlex.quote(HOLE.sub("\ue000", word))
    for hole in holes:
        quoted = quoted.replace("\ue000", hole, 1)
    return quoted


def _flat(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tables.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
