"""Finds secrets by the names of variables, options and files, and masks their values in texts."""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import heapq
import io
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import Any
from urllib.parse import unquote

from cluster_kit.util.terminal import harmless

MASK = "***"
LEFT_OUT = " [the rest is left out]"
"""The end of a shortened text. The cut may be within a secret, whose first part is masked, too."""
SHORTEST = 4
"""Minimum length of a value that is masked: shorter values are part of too many words."""
LEAST_DIGITS = 8
"""Minimum number of digits of a number that is masked."""
LEAST_PART, LONG = 6, 20
"""Minimum length of a line of a multi-line value that is masked, and of a text in a JSON value that
is masked.
"""
Mask = Callable[[str], str]
"""Returns a text with MASK in place of each secret."""
_PLAIN = frozenset(("true", "false", "none", "null", "auto", "basic", "default", "disabled"))
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?")
_SECRET = re.compile(
    r"(^|_)(PASS|PASSWD|PASSWORD|PASSPHRASE|PWD|SECRETS?|TOKEN|CREDENTIALS?|AUTH|APIKEY|KEY|PAT"
    r"|AUTHORIZATION|BEARER|JWT|COOKIE|WEBHOOK|CONNECTION_STRING)(_|[0-9]*$)"
    r"|PASSWORD|SECRET|APIKEY|PASSPHRASE|SSHPASS|TOKEN[0-9]*$",
    re.IGNORECASE,
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Matches between the words of `accessToken`."""
_PATH = re.compile(r"^(OLD)?PWD$|_(FILE|PATH|DIR)$", re.IGNORECASE)
"""Variables that hold a file's path, which is not secret: AWS_SHARED_CREDENTIALS_FILE."""


@functools.lru_cache(maxsize=1024)
def looks_secret(name: str) -> bool:
    """Whether a variable of this name holds a secret, by common names: *_TOKEN, apiKey, …"""
    words = _HUMP.sub("_", name)
    return bool(_SECRET.search(words)) and not _PATH.search(words)


_SECRET_FILES = (
    "*.env", ".env*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.keytab",
    "*.kdbx", "*.ppk", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "credentials*",
    "*credentials.json", "service[-_]account*.json", ".netrc", "_netrc", ".pgpass", ".npmrc",
    ".pypirc", ".htpasswd", ".dockercfg", "kubeconfig*", "secret.*", "secrets.*", "token",
    "token.txt",
)  # fmt: skip
_NEVER_SECRET = (".py", ".pub", ".md")


def looks_secret_file(name: str) -> bool:
    """Whether a file of this name holds a secret, by common names: .env, id_rsa, *.pem, …"""
    lower = name.lower()
    named = any(fnmatch.fnmatchcase(lower, pattern) for pattern in _SECRET_FILES)
    return named and not lower.endswith(_NEVER_SECRET)


def option_values(arguments: Sequence[str]) -> set[str]:
    """The values of options whose names look secret: `--api-token VALUE`, `--api-token=VALUE`."""
    return {value for _, value in _options(arguments) if value is not None}


def without_option_values(arguments: Sequence[str]) -> tuple[str, ...]:
    """The arguments with MASK for each of `option_values`."""
    return tuple(text if value is None else text + MASK for text, value in _options(arguments))


_USERINFO = re.compile(r"(?<=://)[^\s/?#'\"<>]+(?=@)")
"""The text before the host of an address; a password may contain an @ that is not encoded."""
LEAST_RANDOM = 16
"""Minimum length of a user name, or of a part of an address, that counts as a key if it has letters
and digits: tokens of Git hosts, webhooks."""


def url_passwords(text: str) -> set[str]:
    """The passwords of addresses in a text: of `https://USER:PASSWORD@HOST` and `https://TOKEN@`.

    A placeholder such as `${TOKEN}` is not a password.
    """
    passwords = {
        password for match in _USERINFO.finditer(text) for password in _passwords(match[0])
    }
    return passwords | {unquote(password) for password in passwords}


def userinfos(text: str) -> set[str]:
    """`USER:PASSWORD` of each address with a password in a text, as written and decoded."""
    matches = {match[0] for match in _USERINFO.finditer(text) if any(_passwords(match[0]))}
    return matches | {unquote(userinfo) for userinfo in matches}


def without_url_passwords(text: str) -> str:
    """The text with MASK for each of `url_passwords` inside an address."""
    return _USERINFO.sub(lambda match: _without_passwords(match[0]), text)


def without_values(value: Any) -> Any:
    """A manifest's value with MASK for the values of options in a list of words, and of variables
    in a line for a shell, and for passwords in addresses."""
    if isinstance(value, str):
        return without_shell_values(value)
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return list(map(without_shell_values, without_option_values(value)))
    return value


_ASSIGNED = re.compile(r"""(?<![\w$-])([A-Za-z_]\w*)=("(?:[^"\\]|\\.)*"|'[^']*'|[^\s;&|()"']+)""")
"""A variable that a shell sets, and its value."""


def without_shell_values(line: str) -> str:
    """A line of a shell with MASK for values of variables and options that look like secrets, and
    for passwords in addresses."""

    def shown(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        is_known = value.strip("\"'")[:1] in ("", "$", "`") or value == MASK
        return match[0] if is_known or not looks_secret(name) else f"{name}={MASK}"

    line = _ASSIGNED.sub(shown, line)
    try:
        words = shlex.split(line)
    except ValueError:  # the next line closes this quote
        words = line.split()
    for value in sorted(option_values(words), key=len, reverse=True):
        if not value.startswith("$"):
            line = line.replace(value, MASK)
    return without_url_passwords(line)


def _without_passwords(userinfo: str) -> str:
    user, colon, password = userinfo.partition(":")
    shown = MASK if _is_password(password) else password
    return f"{MASK if _is_token(user) else user}{colon}{shown}"


def _passwords(userinfo: str) -> Iterator[str]:
    user, _, password = userinfo.partition(":")
    if _is_password(password):
        yield password
    if _is_token(user):
        yield user


def _is_password(text: str) -> bool:
    """Whether a text is a password: not empty, not masked, and not a placeholder."""
    return text not in ("", MASK) and not text.startswith(("$", "{{"))


def _is_token(user: str) -> bool:
    return len(user) >= LEAST_RANDOM and is_mixed(user) and _is_password(user)


def is_mixed(text: str) -> bool:
    """Whether a text has digits and letters."""
    return any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yields (argument, None), or the text before a secret value in the argument, and the value."""
    follows = False
    for argument in arguments:
        option, equals, value = argument.partition("=")
        is_named = option.startswith("-") and looks_secret(option.lstrip("-").replace("-", "_"))
        if is_named and value not in ("", MASK):
            yield f"{option}=", value
        elif follows and argument != MASK and argument[:1] not in ("", "-"):
            yield "", argument
        else:
            yield argument, None
        follows = is_named and not equals


@functools.lru_cache(maxsize=256)
def parts(value: str) -> frozenset[str]:
    """The parts of a secret to mask: all of it, its lines, and, if it is JSON, texts in it.

    Each is also given as JSON, Python, HTML, YAML and a shell write it, and on one line without
    control characters. A part that occurs in too many words is left out.
    """
    whole = {value, value.strip()}
    lines = {line.strip() for line in value.splitlines()}
    with contextlib.suppress(ValueError, RecursionError):
        lines |= set(_texts(json.loads(value)))
    whole |= {line for line in lines if len(line) >= LEAST_PART}
    telling = [part for part in whole if not _tells_nothing(part)]
    return frozenset(form for part in telling for form in _forms(part))


def _forms(text: str) -> Iterator[str]:
    yield text
    if text.isascii() and text.isalnum():
        return
    quoted = json.dumps(text)[1:-1]
    yield from (quoted, json.dumps(quoted)[1:-1])  # JSON may stand in JSON
    yield json.dumps(text, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f")
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]
    yield repr(f'{text}"')[1:-2]  # in single quotes, even if it contains one
    yield ascii(text)[1:-1]
    yield repr(text.encode(errors="replace"))[2:-1]
    yield from (escape(text), escape(text, quote=False))
    yield quoted.replace("/", "\\/")  # as JSON of a web server quotes it
    yield quoted.replace("'", "\\'")  # as protobuf's text format does
    yield json.dumps(repr(text)[1:-1])[1:-1]  # an error that quotes an error
    yield repr(repr(f'{text}"')[1:-2])[1:-1]
    yield text.replace("'", "''")  # as YAML quotes it
    yield text.replace("'", "'\"'\"'")  # as a shell quotes it
    for plain in (harmless(text), " ".join(harmless(text).split())):
        if not _tells_nothing(plain):
            yield plain


def _texts(value: object) -> Iterator[str]:
    """The texts in a JSON value that are long, or whose key looks secret."""
    if not isinstance(value, dict | list):
        return
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, str) and (len(item) >= LONG or looks_secret(str(key))):
            yield item
            yield from item.splitlines()
        elif isinstance(item, dict | list):
            yield from _texts(item)


def _tells_nothing(value: str) -> bool:
    """Whether a value occurs in too many texts to be masked."""
    is_number = bool(_NUMBER.fullmatch(value)) and sum(map(str.isdigit, value)) < LEAST_DIGITS
    return value.strip().lower() in _PLAIN or is_number or len(value.strip(" \t\r\n*")) < SHORTEST


def masker(values: Iterable[str]) -> Mask:
    """A function that masks these values and their parts, in time linear in a text's length.

    A value is also found if escape sequences or invisible characters divide it, since programs
    print in colours. The returned text then has none of these.
    """
    hidden = sorted({part for value in values for part in parts(value)}, key=len, reverse=True)
    if not hidden:
        return _unchanged
    starry = [part for part in hidden if "*" in part]

    def mask(text: str) -> str:
        shown = hide(text)
        if (shown.isascii() and shown.isprintable()) or (plain := harmless(shown)) == shown:
            return shown
        return shown if (hidden_plain := hide(plain)) == plain else hidden_plain

    def hide(text: str) -> str:
        spans = [_spans(text, part) for part in hidden if part in text]
        if text.endswith(LEFT_OUT):
            spans.append(_begun(text, len(text) - len(LEFT_OUT), hidden))
        shown = _without(text, heapq.merge(*spans)) if spans else text
        if shown == text:
            return text
        # A mask and the text around it may form another value.
        return MASK if any(part in shown for part in starry) else shown

    return mask


def masked(text: str, values: Iterable[str]) -> str:
    """The text with MASK in place of each of these values and their parts."""
    return masker(values)(text)


def masked_facts(value: Any, mask: Mask) -> Any:
    """A JSON value whose texts are masked, keys too."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {masked_facts(k, mask): masked_facts(inner, mask) for k, inner in value.items()}
    if isinstance(value, list | tuple):
        return [masked_facts(inner, mask) for inner in value]
    return value


def _unchanged(text: str) -> str:
    return text


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with one MASK for each group of overlapping spans; `spans` are in order."""
    shown, end = io.StringIO(), 0
    for start, stop in spans:
        if start > end or not end:
            shown.write(text[end:start])
            shown.write(MASK)
        end = max(end, stop)
    shown.write(text[end:])
    return shown.getvalue()


def _spans(text: str, part: str) -> Iterator[tuple[int, int]]:
    start = text.find(part)
    while start >= 0:
        yield start, start + len(part)
        start = text.find(part, start + len(part))


def _begun(text: str, end: int, hidden: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yields the longest span up to `end` that one of these parts begins with, if there is one."""
    first = end
    for part in hidden:
        start = text.find(part[:SHORTEST], max(0, end - len(part)), end)
        while 0 <= start < first and not part.startswith(text[start:end]):
            start = text.find(part[:SHORTEST], start + 1, end)
        first = min(first, start) if start >= 0 else first
    if first < end:
        yield first, end
