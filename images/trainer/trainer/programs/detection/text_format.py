"""Parses and writes the text format of protocol buffers, for label maps and classic pipelines.

`item { id: 1 name: 'cat' }` becomes a Message of fields, each with its line. This module knows no
schema: the caller interprets the fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


class TextFormatError(ValueError):
    """The text is incomplete, or not in text format; the message begins with `line <n>:`."""


@dataclass(frozen=True)
class Word:
    """A bare word: an enumeration's value, `true` or `false`."""

    text: str


@dataclass(frozen=True)
class Field:
    """`name: value`, or `name { … }`."""

    name: str
    value: Value
    line: int


@dataclass(frozen=True)
class Message:
    """The fields between two braces, in order."""

    fields: tuple[Field, ...]

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)


Value = str | int | float | bool | Word | Message

TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
      | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<number>-?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fF]?(?![\w.]))
      | (?P<word>-?[A-Za-z_][\w.]*)
      | (?P<sign>[{}<>\[\]:,;])""",
    re.VERBOSE,
)
CLOSING = {"{": "}", "<": ">"}
BOOLEANS = {"true": True, "True": True, "t": True, "false": False, "False": False, "f": False}
FLOATS = {"inf", "-inf", "nan", "infinity", "-infinity"}
ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
DEEPEST = 50


@dataclass(frozen=True)
class Token:
    """One token of a text, and its line, from 1."""

    kind: str
    text: str
    line: int


def parse(text: str) -> Message:
    """Parse `text` into a Message; TextFormatError names the invalid line."""
    return Reader(list(tokens(text))).message("", 0)


def tokens(text: str) -> Iterator[Token]:
    """Yields the tokens of a text; the last has the kind `end`."""
    at, line = 0, 1
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            shown = "a text that does not end on its line" if text[at] in "\"'" else repr(text[at])
            raise TextFormatError(f"line {line}: {shown} cannot be read here")
        if match.lastgroup != "space":
            yield Token(str(match.lastgroup), match[0], line)
        line += match[0].count("\n")
        at = match.end()
    yield Token("end", "the end of the file", line)


class Reader:
    """Reads a list of tokens from the beginning."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def took(self, sign: str) -> bool:
        """Take the next token if it is this sign; returns whether it was."""
        if self.next.kind == "sign" and self.next.text in sign:
            self.at += 1
            return True
        return False

    def message(self, closing: str, depth: int) -> Message:
        """Read fields up to `closing`, which is taken, too; "" is the end of the text."""
        if depth > DEEPEST:
            raise TextFormatError(f"line {self.next.line}: nested more than {DEEPEST} deep")
        opened, fields = self.tokens[max(self.at - 1, 0)].line, []
        while True:
            if closing and self.took(closing):
                return Message(tuple(fields))
            if self.next.kind == "end":
                if closing:
                    raise TextFormatError(
                        f"line {self.next.line}: the file ends inside the block of line {opened};"
                        f" {closing!r} is missing"
                    )
                return Message(tuple(fields))
            fields.extend(self.field(depth))
            self.took(",;")

    def field(self, depth: int) -> list[Field]:
        """Read one `name: value` or `name { … }`; `name: [a, b]` gives one field per value."""
        name = self.take()
        if name.kind != "word":
            raise TextFormatError(f"line {name.line}: {name.text} where a field's name belongs")
        colon = self.took(":")
        if self.took("["):
            values: list[Value] = []
            while not self.took("]"):
                values.append(self.value(name, depth))
                if not self.took(",") and self.next.text != "]":
                    raise TextFormatError(
                        f"line {self.next.line}: {self.next.text} inside a list; ',' or ']' belongs"
                    )
            return [Field(name.text, value, name.line) for value in values]
        if not colon and not (self.next.kind == "sign" and self.next.text in CLOSING):
            raise TextFormatError(
                f"line {self.next.line}: {self.next.text} after {name.text}; ':' or '{{' belongs"
            )
        return [Field(name.text, self.value(name, depth), name.line)]

    def value(self, name: Token, depth: int) -> Value:
        token = self.take()
        if token.kind == "sign" and token.text in CLOSING:
            return self.message(CLOSING[token.text], depth + 1)
        if token.kind == "text":
            parts = [unquoted(token)]
            while self.next.kind == "text":
                parts.append(unquoted(self.take()))
            return "".join(parts)
        if token.kind == "number":
            return number(token.text)
        if token.kind == "word":
            if token.text.lower() in FLOATS:
                return float(token.text)
            return BOOLEANS.get(token.text, Word(token.text))
        raise TextFormatError(f"line {token.line}: {token.text} where {name.text}'s value belongs")


def number(text: str) -> int | float:
    """Returns the number in a token; raises ValueError if it is not a number."""
    if text.lstrip("-").lower().startswith("0x"):
        return int(text, 16)
    plain = text.rstrip("fF")
    return int(plain) if re.fullmatch(r"-?\d+", text) else float(plain)


def unquoted(token: Token) -> str:
    r"""Returns the text between the quotes, with escapes resolved.

    \x and octal escapes are bytes of UTF-8.
    """

    def resolve(match: re.Match[str]) -> str:
        hexadecimal, octal, unicode, other = match.groups()
        if unicode:
            return chr(int(unicode, 16))
        if other is not None:
            return ESCAPES.get(other, other)
        # A byte for now: surrogates keep it apart from characters until all bytes are there.
        return chr(0xDC00 + (int(hexadecimal, 16) if hexadecimal else int(octal, 8) & 0xFF))

    text = ESCAPE.sub(resolve, token.text[1:-1])
    raw = b"".join(
        bytes([ord(c) - 0xDC00]) if 0xDC00 <= ord(c) <= 0xDCFF else c.encode("utf-8", "replace")
        for c in text
    )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise TextFormatError(f"line {token.line}: {token.text} is not UTF-8") from problem


def quoted(text: str) -> str:
    """Returns `text` as a string of the text format."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    shown = "".join(
        escapes.get(c) or (c if c.isprintable() else "".join(f"\\{b:03o}" for b in c.encode()))
        for c in text
    )
    return f'"{shown}"'
