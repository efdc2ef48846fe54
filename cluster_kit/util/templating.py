"""Jinja2, for everybody: the kit's own templates, and small ones that stand in a manifest. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, TemplateError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"


@cache
def own(name: str) -> Template:
    """A template of the kit's, from templates/."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template(name)


class TextError(Exception):
    """A person's template that is none, or that cannot be filled; the message is one line."""


@dataclass(frozen=True)
class Text:
    """A template that a person wrote, and the names that it asks for."""

    template: Template
    names: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> Text:
        """Raises TextError where it is no template."""
        try:
            tree = _sandbox().parse(text)
            template = _sandbox().from_string(text)
        except (TemplateError, RecursionError) as error:
            raise TextError(_one_line(error)) from error
        names = find_undeclared_variables(tree) - _sandbox().globals.keys()
        return cls(template, frozenset(names))

    def fill(self, values: Mapping[str, Any]) -> str:
        """Raises TextError where it asks something of the values that they cannot answer."""
        try:
            return self.template.render(values)
        except Exception as error:
            # A template computes, so it can raise whatever Python can.
            raise TextError(_one_line(error)) from error


@cache
def _sandbox() -> Environment:
    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
