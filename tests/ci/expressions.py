"""Evaluates expressions of GitHub Actions, as far as the kit's files use them: `${{ a.b == 'c' || d
}}`.

An unknown context, step or function is an error here; GitHub would use "" for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_HOLE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_TOKEN = re.compile(
    r"\s*('(?:[^']|'')*'|&&|\|\||==|!=|[!()]|[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)"
)
STATUS = ("always", "success", "failure")
OPEN = ("outputs", "env", "inputs")
"""Contexts in which a name may be missing, which gives ""; other names must exist."""


class Unknown(Exception):
    """The expression has an unknown name, or is not understood."""


def fill(text: str, contexts: Mapping[str, Any], *, failed: bool = False) -> str:
    """The text with each `${{ … }}` replaced by its value."""
    return _HOLE.sub(lambda hole: _text(evaluate(hole[1], contexts, failed=failed)), text)


def holds(condition: str, contexts: Mapping[str, Any], *, failed: bool) -> bool:
    """Returns whether a step with this `if:` runs; without a status function, only if no step has
    failed."""
    inner = _HOLE.fullmatch(condition.strip())
    text = inner[1] if inner else condition
    value = _true(evaluate(text, contexts, failed=failed))
    return value and (not failed or any(f"{name}(" in text for name in STATUS))


def evaluate(text: str, contexts: Mapping[str, Any], *, failed: bool = False) -> Any:
    """Returns the value of an expression: a text or a truth value."""
    tokens = _tokens(text)
    value = _Reader(tokens, contexts, failed).alternatives()
    if tokens:
        raise Unknown(f"{text!r}: {tokens} is left over")
    return value


def _tokens(text: str) -> list[str]:
    tokens, place = [], 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            raise Unknown(f"{text!r} is not understood from {text[place:]!r} on")
        tokens.append(match[1])
        place = match.end()
    return tokens


class _Reader:
    """Reads the tokens of an expression from the left; operators bind as in GitHub's."""

    def __init__(self, tokens: list[str], contexts: Mapping[str, Any], failed: bool) -> None:
        self._tokens, self._contexts, self._failed = tokens, contexts, failed

    def alternatives(self) -> Any:
        value = self._all()
        while self._takes("||"):
            other = self._all()
            value = value if _true(value) else other
        return value

    def _all(self) -> Any:
        value = self._comparison()
        while self._takes("&&"):
            other = self._comparison()
            value = other if _true(value) else value
        return value

    def _comparison(self) -> Any:
        value = self._one()
        for sign in ("==", "!="):
            if self._takes(sign):
                same = _text(value).casefold() == _text(self._one()).casefold()
                return same is (sign == "==")
        return value

    def _one(self) -> Any:
        if self._takes("!"):
            return not _true(self._one())
        if self._takes("("):
            value = self.alternatives()
            self._wants(")")
            return value
        token = self._tokens.pop(0)
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if token in ("true", "false"):
            return token == "true"
        if self._takes("("):
            self._wants(")")
            states = {"always": True, "success": not self._failed, "failure": self._failed}
            if token not in states:
                raise Unknown(f"there is no function {token}()")
            return states[token]
        return self._named(token)

    def _named(self, name: str) -> Any:
        value: Any = self._contexts
        parts = name.split(".")
        for above, part in zip(["", *parts], parts, strict=False):
            if part not in value and above not in OPEN:
                raise Unknown(f"{name}: there is no {part}")
            value = value.get(part, "")
        return value

    def _takes(self, token: str) -> bool:
        if self._tokens[:1] != [token]:
            return False
        self._tokens.pop(0)
        return True

    def _wants(self, token: str) -> None:
        if not self._takes(token):
            raise Unknown(f"a {token} is missing before {self._tokens}")


def _true(value: Any) -> bool:
    return bool(value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
