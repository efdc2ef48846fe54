"""Which tasks run the program and which are servers: the manifest's `style`, resolved. Pure.

coordinator   the chief runs the program; ps and workers are servers that wait for its work
all-tasks     the chief, if there is one, and every worker run it; ps serve, or run it too
"""

from __future__ import annotations

import ast
import io
import re
import sys
import token
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from cluster_kit.errors import HintText, Problem, Setting
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.resolved import OWN_IMAGE
from cluster_kit.roles import CHIEF, EVALUATOR, PS, ROLES, WORKER, Style

if TYPE_CHECKING:  # building the manifest's models takes long; many commands read none
    from cluster_kit.manifest.schema import Manifest

ALL_TASKS = Setting("style", "all-tasks")
ONE_CHIEF, ONE_PS = Setting(CHIEF.name, 1), Setting(PS.name, 1)


def style_of(manifest: Manifest) -> Style:
    """The style that the manifest sets; for "auto", the style that its counts imply.

    In TensorFlow 1 no chief coordinates servers, so each task runs the program.
    """
    if manifest.style != "auto":
        return manifest.style
    if manifest.tf1:
        return "all-tasks"
    coordinated = manifest.count(CHIEF.name) > 0 and manifest.count(PS.name) > 0
    return "coordinator" if coordinated else "all-tasks"


def runs_program(manifest: Manifest, role: str) -> bool:
    """Whether tasks of this role run the program; otherwise they are servers."""
    row = ROLES[role]
    if row.runs_program_if:
        return bool(getattr(manifest, row.runs_program_if) == "program")
    return style_of(manifest) in row.runs_program_in


def check_style(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems: counts that do not fit the style, and keys that need another style."""
    yield from _check_counts(manifest)
    coordinated = style_of(manifest) == "coordinator"
    reads = (CHIEF.name, PS.name, "program")
    program = PROGRAMS.get(manifest.program)
    if program is not None and coordinated and "coordinator" not in program.styles:
        rule = f"every replica of {manifest.program} runs the program: no chief coordinates them"
        yield Problem("style", f'"{manifest.style}"', rule, ("write ", ALL_TASKS), reads)
    if program is not None and not program.scores and (count := manifest.count(EVALUATOR.name)) > 0:
        rule = f"{manifest.program} has nothing that an evaluator scores"
        none = ("write ", Setting(EVALUATOR.name, 0))
        yield Problem(EVALUATOR.name, str(count), rule, none, ("program",))
    if manifest.ps_runs == "program" and coordinated:
        rule = "under a coordinator every ps is a server"
        server = Setting("ps_runs", "server")
        hint = ("write ", server, ", or ", ALL_TASKS, " if each task runs the program")
        yield Problem("ps_runs", '"program"', rule, hint, ("style", CHIEF.name, PS.name))
    if manifest.tf1:
        yield from _check_tf1(manifest)


def _check_tf1(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems of keys that do not work with a program for TensorFlow 1."""
    off = Setting("tf1", False)
    if manifest.program in PROGRAMS:
        rule = f"{manifest.program} is written for TensorFlow 2"
        hint = ("write ", off, ", or name a program of yours")
        yield Problem("tf1", "true", rule, hint, ("program",))
    elif manifest.style == "coordinator":
        rule = "in TensorFlow 1 no chief coordinates servers: every task runs the program"
        yield Problem("style", '"coordinator"', rule, ("write ", ALL_TASKS, ", or ", off), ("tf1",))


def _check_counts(manifest: Manifest) -> Iterator[Problem]:
    """Yields a problem for the first rule about chief, ps and style that the counts break."""
    reads = (CHIEF.name, WORKER.name, "style", "program", "tf1")
    auto = manifest.style == "auto" and not manifest.tf1
    chief, ps = manifest.count(CHIEF.name), manifest.count(PS.name)
    replicas = max(chief, 0) + manifest.count(WORKER.name)
    program = PROGRAMS.get(manifest.program)
    if program is not None and program.between_graph and ps == 0 and replicas > 1:
        rule = "At least 1 ps task is needed for distributed training"
        alone = (Setting(CHIEF.name, 0), ", ", Setting(WORKER.name, 1))
        yield Problem(
            PS.name, "0", rule, ("write ", ONE_PS, "; one replica alone: ", *alone), reads
        )
    elif manifest.style == "coordinator":
        if chief == 0:
            rule = "the style coordinator needs a chief that runs the program"
            hint = ("write ", ONE_CHIEF, ", or ", ALL_TASKS)
            yield Problem(CHIEF.name, "0", rule, hint, ("style",))
        if ps == 0:
            rule = "at least 1 ps task is needed under a chief that coordinates workers"
            yield Problem(PS.name, "0", rule, ("write ", ONE_PS, ", or ", ALL_TASKS), reads)
    elif auto and ps > 0 and chief == 0:
        rule = "ps tasks need a chief that coordinates them, or workers that run the program"
        ways = ("write ", ONE_CHIEF, ", or ", Setting(PS.name, 0), ", or ", ALL_TASKS)
        yield Problem(PS.name, str(ps), rule, (*ways, " if each worker runs the program"), reads)
    elif auto and ps == 0 and chief == 1:
        rule = "at least 1 ps task is needed under a chief that coordinates workers"
        ways = ("write ", ONE_PS, ", or ", Setting(CHIEF.name, 0), ", or ", ALL_TASKS)
        yield Problem(PS.name, "0", rule, (*ways, " if each worker trains, too"), reads)


OWN_VERSION = "2.21.0"
"""The versions of the kit's lock files."""
OLDEST_TENSORFLOW = (2, 15)
LAST_WITH_ESTIMATORS = (2, 15)
"""The last version with tf.estimator."""
NIGHTLY = "nightly"
_VERSION = re.compile(r"(\d+)\.(\d+)(\.\d+)?(rc\d+|\.post\d+)?")
_PIN = re.compile(
    r"tensorflow(?:[-_]cpu|[-_]gpu)?(?:\[[^]]*\])?\s*===?\s*([^\s;,*]+)$", re.IGNORECASE
)


def has_estimators(version: str) -> bool:
    """Returns whether this `tensorflow` of a manifest ("" for the kit's own) has tf.estimator."""
    match = _VERSION.fullmatch(version or OWN_VERSION)
    return match is not None and (int(match[1]), int(match[2])) <= LAST_WITH_ESTIMATORS


def has_keras_3(manifest: Manifest) -> bool:
    """Returns whether `import keras` is Keras 3, as of TensorFlow 2.16; False if it is not
    certain."""
    return manifest.runs_in_kits_image and not has_estimators(manifest.tensorflow)


def check_version(manifest: Manifest) -> Iterator[Problem]:
    """Yields a problem if `tensorflow` is invalid or too old, or if another image is set, too."""
    hint: HintText
    wanted = manifest.tensorflow
    if not wanted:
        return
    value, match = f'"{wanted}"', _VERSION.fullmatch(wanted)
    if match is None and wanted != NIGHTLY:
        hint = ("write ", Setting("tensorflow", "2.16"), ', or "2.16.1", or "nightly"')
        yield Problem("tensorflow", value, "not a version of TensorFlow", hint)
    elif match and (int(match[1]), int(match[2])) < OLDEST_TENSORFLOW:
        oldest = ".".join(map(str, OLDEST_TENSORFLOW))
        hint = ("write ", Setting("tensorflow", oldest), " or newer, or use your own image")
        yield Problem("tensorflow", value, f"the oldest that the kit installs is {oldest}", hint)
    if manifest.build:
        rule = "the kit installs a version only in its own image, not in one that `build` makes"
        yield Problem("tensorflow", value, rule, "remove it, and install it in your Dockerfile")
    elif manifest.image != OWN_IMAGE:
        rule = f"the kit installs a version only in its own image, not in {manifest.image}"
        hint = ("remove it, or write ", Setting("image", OWN_IMAGE))
        yield Problem("tensorflow", value, rule, hint)


def check_pins(manifest: Manifest, requirements: str, places: Sequence[str]) -> Iterator[Problem]:
    """Yields a problem for a requirement that pins another TensorFlow than the image's.

    Args:
        places: the place of each line of `requirements`.
    """
    has = manifest.tensorflow or OWN_VERSION
    for place, line in zip(places, requirements.splitlines(), strict=True):
        pin = _PIN.fullmatch(line.partition(";")[0].strip())
        if pin and manifest.runs_in_kits_image and pin[1] != has:
            rule = f"it asks for another TensorFlow than the image has ({has})"
            hint: HintText = ("let the image have it: ", Setting("tensorflow", pin[1]))
            version = _VERSION.fullmatch(pin[1])
            if version and (int(version[1]), int(version[2])) < OLDEST_TENSORFLOW:
                hint = "remove the line: the oldest that the kit installs is " + ".".join(
                    map(str, OLDEST_TENSORFLOW)
                )
            yield Problem("requirements", f"`{line}`", rule, hint, line=place)


OLDEST_PYTHON = (3, 11)
"""The Python of the default base image, and the oldest that this package runs on."""
MOST_BYTES = 1_000_000
MOST_SHOWN = 80
NOT_UTF8 = "the text is not in utf-8, nor in an encoding that its first lines name"
UNREADABLE = (OSError, ValueError, RecursionError, MemoryError)
"""The file is unreadable, or too large for the parser: the run itself will show why."""


@dataclass(frozen=True)
class Fault:
    """A syntax error: its `file:line`, the text of that line, and the parser's message."""

    location: str
    line: str
    message: str


def content(file: Path) -> bytes:
    """The file's bytes; raises OSError, and ValueError for a file of more than MOST_BYTES."""
    if file.stat().st_size > MOST_BYTES:
        raise ValueError("too long for a hand-written program")
    return file.read_bytes()


def tree(text: bytes, version: tuple[int, int] | None = None) -> ast.Module:
    """The syntax tree, as this or another version of Python reads it; raises SyntaxError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, feature_version=version)


def fault(program: Path) -> Fault | None:
    """The syntax error of a program; None if it has none or if it cannot be read.

    What this Python rejects, an older one rejects, too, since the grammar only grows.
    """
    try:
        text = content(program)
        if not _can_be_read(text):
            return _not_utf8(text, program.name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<program>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return fault_of(error, text, program.name)
    except UNREADABLE:
        return None
    return None


def _can_be_read(text: bytes) -> bool:
    """Whether the text can be decoded: in the encoding that it names, else in UTF-8."""
    try:
        text.decode(tokenize.detect_encoding(io.BytesIO(text).readline)[0])
    except (UnicodeDecodeError, SyntaxError):
        return False
    return True


def _not_utf8(text: bytes, name: str) -> Fault:
    """The first line that is not UTF-8, in a text that names no encoding."""
    lines = text.splitlines()
    number = next((n for n, line in enumerate(lines, 1) if not _is_utf8(line)), 1)
    shown = lines[number - 1].decode(errors="replace").strip() if lines else ""
    return Fault(f"{name}:{number}", shown[:MOST_SHOWN], NOT_UTF8)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def too_new(text: bytes, name: str, version: tuple[int, int] = OLDEST_PYTHON) -> Fault | None:
    """The first construct of a valid text that an older Python rejects; None if there is none."""
    if version >= sys.version_info[:2]:
        return None
    try:
        tree(text, version)
    except SyntaxError as error:
        return fault_of(error, text, name)
    return None


def fault_of(error: SyntaxError, text: bytes, name: str) -> Fault:
    """The location, line and message of a syntax error in `text`, the file called `name`."""
    number = error.lineno or 1
    raw_line = text.splitlines()[number - 1 : number]
    line = b"".join(raw_line).decode(errors="replace").strip()
    excerpt = line if len(line) <= MOST_SHOWN else line[: MOST_SHOWN - 1] + "…"
    return Fault(f"{name}:{number}", excerpt, error.msg)


MOST_LINES = 12
STARTS = (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
          tokenize.COMMENT)  # fmt: skip
HINTS = {
    "Missing parentheses in call to 'print'": "write print(…), with parentheses",
    "Missing parentheses in call to 'exec'": "write exec(…), with parentheses",
    "multiple exception types must be parenthesized": "write `except X as e:`",
    "leading zeros in decimal integer literals": "write 0o644 for 0644",
    "invalid decimal literal": "write numbers without the L of Python 2",
}
"""Messages of Python 3 about code for Python 2, and what to write instead."""


def hint(message: str, text: bytes) -> str:
    """The hint for a syntax error with this message in this text; "" if the text is not certainly
    written for Python 2."""
    known = next((HINTS[start] for start in HINTS if message.startswith(start)), "")
    if not known or (message.startswith("invalid decimal") and b"print " not in text):
        return ""
    lines = list(dict.fromkeys(_print_statements(text))) if "print" in message else []
    shown = ", ".join(map(str, lines[:MOST_LINES]))
    more = f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
    where = f" (lines {shown}{more})" if len(lines) > 1 else ""
    return f"it is written for Python 2, which is not rewritten here: {known}{where}"


def _print_statements(text: bytes) -> Iterator[int]:
    """The line numbers of `print` statements without a parenthesis."""
    try:
        tokens = list(tokenize.tokenize(io.BytesIO(text).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return
    begins = True
    for current, after in pairwise(tokens):
        if begins and (current.type, current.string) == (tokenize.NAME, "print"):
            operand = after.type in (tokenize.STRING, tokenize.NAME, tokenize.NUMBER)
            if operand or after.string in (">>", "[", "{", "-", "`"):
                yield current.start[0]
        begins = current.type in STARTS or current.exact_type in (token.COLON, token.SEMI)
