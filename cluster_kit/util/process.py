"""Starts programs on the host; no other module does."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from types import FrameType
from typing import IO, Any, Concatenate, ParamSpec, TypeVar

from cluster_kit.util import debug_log
from cluster_kit.util.masking import without_option_values, without_url_passwords

GRACE_S = 4.0
POLL_S = 0.1
EXIT_CODE = 130
_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_hangup: Any = signal.SIG_DFL
"""What a closed terminal does: it ends the command, unless that was started by `nohup`."""
_is_command = False
_is_interrupted = False
_calls = 0
"""Number of calls of `interrupt_once`; each call begins another part of the command."""
_completing = 0


def interrupt_once() -> None:
    """Let the first signal raise KeyboardInterrupt in the main thread and ignore the rest."""
    global _is_command, _is_interrupted, _calls, _hangup
    if not _is_command:
        _hangup = signal.getsignal(signal.SIGHUP)
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(reading,), daemon=True).start()
    _is_command, _is_interrupted = True, False
    _calls += 1
    for number in _NUMBERS:
        signal.signal(number, _interrupt)
    signal.signal(signal.SIGHUP, _hangup)


def ignore() -> None:
    """Ignore both signals, and the closing of the terminal, from now on: for the short work at the
    end that must be completed.

    Nothing if `interrupt_once` was never called: this process is not the kit's command.
    """
    for number in (*_NUMBERS, signal.SIGHUP) if _is_command else ():
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def completing() -> Iterator[None]:
    """A block that an interrupted command completes, also if that takes longer than GRACE_S.

    For code that saves or removes things. The block must end by itself.
    """
    global _completing
    _completing += 1
    try:
        yield
    finally:
        _completing -= 1


def is_interrupted() -> bool:
    """Whether a signal has interrupted this command."""
    return _is_interrupted


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    global _is_interrupted
    ignore()
    _is_interrupted = True
    raise KeyboardInterrupt


def _watch(arrivals: int) -> None:
    """Make each signal interrupt the command, and make the command end; runs in a thread.

    Args:
        arrivals: where Python writes the number of a signal as soon as the system delivers it.
    """
    while arrived := os.read(arrivals, 1):
        if (number := arrived[0]) in _NUMBERS:
            _reach_main_thread(number)
            if _is_interrupted:
                _end_if_stuck()


def _reach_main_thread(number: int) -> None:
    """Repeat a signal until its handler has run.

    A signal that arrives just before the main thread begins to wait for a lock would not wake it.
    """
    main = threading.main_thread().ident
    while not _is_interrupted and signal.getsignal(number) is _interrupt and main is not None:
        time.sleep(POLL_S)
        if not _is_interrupted and signal.getsignal(number) is _interrupt:
            signal.pthread_kill(main, number)


def _end_if_stuck() -> None:
    """End this process if it completes nothing for GRACE_S; return if it makes progress."""
    call, until = _calls, time.monotonic() + GRACE_S
    while time.monotonic() < until:
        time.sleep(POLL_S)
        if call != _calls:
            return
        if _completing:
            until = time.monotonic() + GRACE_S
    os._exit(EXIT_CODE)


PATIENCE_S = 4.0
"""Time for a command to end after SIGTERM, before SIGKILL."""
KILLED_S = 1.0
NOT_FOUND, TIMED_OUT, CUT_OFF = 127, 124, -signal.SIGTERM
_LAST_LINES = 100
_PASSED = 4 * 2**20
DRAWN_S = 1.0
_LOG = logging.getLogger(__name__)
_P = ParamSpec("_P")
_R = TypeVar("_R", "Completed", int)


@dataclass(frozen=True)
class Completed:
    """How a command ended; `output` is stdout, `errors` is stderr.

    If the output was shown live on a terminal, both are "". If it was relayed, `errors` has the
    last lines of both.
    """

    command: tuple[str, ...]
    code: int
    output: str
    errors: str

    @property
    def ok(self) -> bool:
        return self.code == 0

    def tail(self, lines: int = 15) -> str:
        """The last lines of stderr, or of stdout if stderr is empty, for an error message."""
        written = (self.errors.strip() or self.output.strip()).splitlines()
        return "\n".join(written[-lines:])


def _logged(
    function: Callable[Concatenate[Sequence[str], _P], _R],
) -> Callable[Concatenate[Sequence[str], _P], _R]:
    """The function with a line in the debug log: the command, its exit code, its time."""

    @wraps(function)
    def call(command: Sequence[str], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with debug_log.timed(_LOG, _shown(command)) as result:
            done = function(command, *args, **kwargs)
            result(f"exit code {done.code if isinstance(done, Completed) else done}")
            return done

    return call


def _shown(command: Sequence[str]) -> str:
    """The command as a shell would take it, without values of options such as --api-token, and
    without passwords in addresses."""
    return shlex.join(map(without_url_passwords, without_option_values(command)))


@_logged
def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    show: bool = False,
    timeout_s: float | None = None,
    most: int | None = None,
) -> Completed:
    """Run a command to its end and return how it ended; a non-zero exit code does not raise.

    A program that is not installed ends with code 127, as in a shell, and one that is ended since
    it ran longer than `timeout_s` seconds with 124, as by `timeout`; `errors` says so. The command
    has a session of its own: Ctrl-C reaches only the kit, which then ends the command.

    Args:
        env: variables added to the kit's own environment.
        cwd: the directory to run in; None for the current one.
        show: let the command write to this terminal instead of capturing its output. If stderr is
            no terminal, the output is relayed to it, so that a reader who closes the pipe (see
            `stdio`) does not end the command.
        timeout_s: if output is relayed, the time counts from the end of the output.
        most: maximum number of characters to read from each of stdout and stderr, if captured. A
            command that writes more blocks.
    """
    if shutil.which(command[0]) is None:
        return Completed(tuple(command), NOT_FOUND, "", f"{command[0]}: command not found")
    relayed = show and not sys.stderr.isatty()
    captured = None if show and not relayed else subprocess.PIPE
    child = subprocess.Popen(
        list(command),
        env={**os.environ, **(env or {})},
        cwd=cwd,
        stdout=captured,
        stderr=subprocess.STDOUT if relayed else captured,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    last: deque[str] = deque(maxlen=_LAST_LINES)
    try:
        if relayed and child.stdout is not None:
            for line in child.stdout:
                last.append(line)
                sys.stderr.write(line)
                sys.stderr.flush()
        if most is not None and captured is not None:
            output, errors = _first(child, most, timeout_s)
        else:
            output, errors = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        _end(child)
        late = f"{command[0]} did not end within {error.timeout:g} s"
        return Completed(tuple(command), TIMED_OUT, "", late)
    except BaseException:
        _end(child)
        raise
    return Completed(tuple(command), child.returncode, output or "", errors or "".join(last))


def _first(child: subprocess.Popen[str], most: int, timeout_s: float | None) -> tuple[str, str]:
    """The first characters of what a command prints on stdout and on stderr, when it has ended.

    Raises:
        subprocess.TimeoutExpired: it has not ended by then.
    """
    lines = ["", ""]

    def read(at: int, stream: IO[str]) -> None:
        lines[at] = stream.read(most)
        stream.close()

    pipes = [(at, pipe) for at, pipe in enumerate((child.stdout, child.stderr)) if pipe is not None]
    readers = [threading.Thread(target=read, args=pair, daemon=True) for pair in pipes]
    for reader in readers:
        reader.start()
    child.wait(timeout_s)
    for reader in readers:
        reader.join(PATIENCE_S)
    return lines[0], lines[1]


@_logged
def stream(command: Sequence[str], each: Callable[[str], None]) -> Completed:
    """Run a command to its end, and pass on each line as soon as it is written.

    A line that is redrawn, such as a progress bar, is passed on once a second. `errors` has the
    last lines. Otherwise like `run`.
    """
    if shutil.which(command[0]) is None:
        return Completed(tuple(command), NOT_FOUND, "", f"{command[0]}: command not found")
    child = subprocess.Popen(
        list(command),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    last: deque[str] = deque(maxlen=_LAST_LINES)
    drawn = -1.0
    try:
        assert child.stdout is not None
        for line in io.TextIOWrapper(child.stdout, errors="replace", newline=""):
            text, now = line.rstrip(), time.monotonic()
            if not text or (line.endswith("\r") and now - drawn < DRAWN_S):
                continue
            drawn = now
            last.append(f"{text}\n")
            each(text)
        child.wait()
    except BaseException:
        _end(child)
        raise
    return Completed(tuple(command), child.returncode, "", "".join(last))


def pass_on(
    source: Sequence[str], sink: Sequence[str], each: Callable[[int], None]
) -> tuple[Completed, Completed]:
    """Run two commands, the first's output piped into the second; return how both ended.

    If the second ends early, the first is ended, and its code is always CUT_OFF.

    Args:
        each: called after every few MB with the number of bytes passed so far.
    """
    missing = next((one[0] for one in (source, sink) if shutil.which(one[0]) is None), None)
    if missing is not None:
        lacks = Completed(tuple(source), NOT_FOUND, "", f"{missing}: command not found")
        return lacks, lacks
    _LOG.debug("%s | %s", _shown(source), _shown(sink))
    pipe, part, passed = subprocess.PIPE, b"", 0
    reader = subprocess.Popen(
        sink, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, start_new_session=True
    )
    writer = subprocess.Popen(
        source, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
    )
    assert writer.stdout is not None and reader.stdin is not None
    try:
        with contextlib.suppress(BrokenPipeError):
            while part := writer.stdout.read(_PASSED):
                reader.stdin.write(part)
                passed += len(part)
                each(passed)
        if part:
            writer.terminate()
        _, wrong = writer.communicate()
        code = CUT_OFF if part else writer.returncode
        output, _ = reader.communicate()
    except BaseException:
        _end(writer)
        _end(reader)
        raise
    return (
        Completed(tuple(source), code, "", wrong.decode(errors="replace")),
        Completed(tuple(sink), reader.returncode, "", output.decode(errors="replace")),
    )


def _end(child: subprocess.Popen[Any]) -> None:
    """End the command and wait for it; SIGTERM comes first, so that it can finish its work."""
    with completing():
        for number, seconds in ((signal.SIGTERM, PATIENCE_S), (signal.SIGKILL, KILLED_S)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.communicate(timeout=seconds)
                return


@contextlib.contextmanager
def afterwards(command: Sequence[str]) -> Iterator[None]:
    """Run a command when the `with` block ends in any way, even if this process is killed or its
    terminal is closed. Its output is not shown, and its exit code is ignored."""
    waits = ["sh", "-c", 'cat >/dev/null; exec "$@"', "sh", *command]
    nowhere = subprocess.DEVNULL
    child = subprocess.Popen(
        waits, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
    )
    try:
        yield
    finally:
        with completing():
            assert child.stdin is not None
            child.stdin.close()
            child.wait()


@_logged
def hand_over(command: Sequence[str]) -> int:
    """Run a command on this terminal, with its stdin, to its end; return its exit code.

    A program that is not installed ends with code 127; one that a signal ended, as in a shell.
    """
    if shutil.which(command[0]) is None:
        print(f"{command[0]}: command not found", file=sys.stderr)
        return NOT_FOUND
    child = subprocess.Popen(list(command))
    try:
        code = child.wait()
    except BaseException:
        child.terminate()
        try:
            child.wait(KILLED_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise
    return code if code >= 0 else 128 - code


def start_daemon(command: Sequence[str], log_path: str) -> int:
    """Start a program that outlives the kit, in its own session, and return its pid.

    Its output is appended to the file at `log_path`.
    """
    with open(log_path, "ab") as log:  # noqa: PTH123 - handed to the child as a descriptor
        child = subprocess.Popen(
            list(command),
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    return child.pid
