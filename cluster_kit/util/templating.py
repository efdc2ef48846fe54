"""Jinja2: the kit's own templates, and the small ones in a manifest's arguments. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from cluster_kit.util.paths import TEMPLATES

if TYPE_CHECKING:  # most commands fill no template, and importing Jinja2 takes long
    from jinja2 import Environment, Template


@cache
def kit_template(name: str, **filters: Callable[..., str]) -> Template:
    """The kit's template of this name, from templates/, with these filters."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters.update(filters)
    return environment.get_template(name)


def kit_text(name: str) -> str:
    """The content of a file in templates/ that is not a template."""
    return (TEMPLATES / name).read_text(encoding="utf-8")


class TextError(Exception):
    """A template in a manifest is invalid, or cannot be filled; the message is one line."""


@dataclass(frozen=True)
class Text:
    """A template from a manifest, and the names that it uses."""

    template: Template
    names: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> Text:
        """The parsed template; raises TextError if the text is not a valid template."""
        from jinja2 import TemplateError

        try:
            return cls(*_parsed(text))
        except (TemplateError, RecursionError) as error:
            raise TextError(_one_line(error)) from error

    def fill(self, values: Mapping[str, Any]) -> str:
        """The filled text; raises TextError if the template cannot be filled with these values."""
        try:
            return self.template.render(values)
        except Exception as error:
            # A template can evaluate expressions, so it can raise any exception.
            raise TextError(_one_line(error)) from error


@lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[Template, frozenset[str]]:
    """The template and the names that it uses; cached, since a plan reads arguments repeatedly."""
    from jinja2.meta import find_undeclared_variables

    tree = _sandbox().parse(text)
    names = find_undeclared_variables(tree) - _sandbox().globals.keys()
    return _sandbox().from_string(tree), frozenset(names)


@cache
def _sandbox() -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
