"""Run a Python program like `python PROGRAM`, but exit fast at its end: runner.py PROGRAM [ARG…]

Interpreter and TensorFlow take up to 40 s to destroy a strategy that is no longer needed. So only
the steps on which a program can rely are done (threads, atexit, open files, the exit code); then
the process exits. Run as a file: nothing of this package is imported, so that a user's module can
be called `trainer`.
"""

from __future__ import annotations

import sys

if not getattr(sys.flags, "safe_path", False):  # since Python 3.11
    del sys.path[0]  # this file's directory, which the program must not see

import _io
import atexit
import contextlib
import functools
import gc
import io
import os
import signal
import threading
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from traceback import format_exception_only
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:  # modules that the program may never need, `typing` above all, take 5 ms
    from typing import NoReturn

SAVING = "saving"
"""The file in the mailbox (mailbox.py) that lets the supervisor wait longer after SIGTERM."""
LAST_WORDS = "last-words"
"""The file in the mailbox with the program's last message."""
THREADS = "threads"
"""The file in the mailbox that says which threads keep the program from ending."""
THREADS_END_S, TOLD_S = 10.0, 1.0
EXIT_STDOUT_LOST = 120
"""Python's exit code if the output cannot be written to stdout."""


def main(program: str, arguments: list[str]) -> NoReturn:
    """Run the program, and leave with its exit code."""
    sys.argv = [program, *arguments]
    sys.orig_argv = [sys.executable, *sys.argv]
    if not getattr(sys.flags, "safe_path", False):  # since Python 3.11
        sys.path.insert(0, os.path.dirname(os.path.realpath(program)))  # noqa: PTH120
    module = main_module(os.path.abspath(program))  # noqa: PTH100
    if mailbox := os.environ.get("CLUSTER_KIT_MAILBOX"):
        signal.signal = patient_once_handled(os.path.join(mailbox, SAVING))  # noqa: PTH118
    try:
        run(module)
    except SystemExit as problem:
        if words := refused_arguments(problem):
            leave_words(words)
        leave(exit_code(problem.code))
    except BaseException as problem:  # noqa: BLE001 - Python shows every kind
        # In here, while the exception keeps the program's frames and with them its strategy.
        show(problem)
        leave(1, killed_by=signal.SIGINT if type(problem) is KeyboardInterrupt else None)
    leave(0)


def main_module(file: str) -> ModuleType:
    """`__main__` as Python makes it for a file."""
    module = ModuleType("__main__")
    module.__file__ = file
    module.__cached__ = None
    module.__annotations__ = {}
    module.__loader__ = SourceFileLoader("__main__", file)
    module.__builtins__ = sys.modules["builtins"]
    sys.modules["__main__"] = module
    return module


def patient_once_handled(mark: str) -> Callable[[int, object], object]:
    """A signal.signal that keeps the file `mark` while the program handles SIGTERM, since it may
    save.

    TensorFlow's own handler does not count: it is always installed.
    """
    plain = signal.signal

    @functools.wraps(plain)
    def marking(number: int, handler: object) -> object:
        before = plain(number, handler)
        if number == signal.SIGTERM:
            with contextlib.suppress(OSError):
                if callable(handler):
                    open(mark, "w").close()  # noqa: PTH123
                else:
                    os.unlink(mark)  # noqa: PTH108
        return before

    return marking


def run(module: ModuleType) -> None:
    """Execute the program in its module, as Python does."""
    with io.open_code(module.__file__) as source:
        code = compile(source.read(), module.__file__, "exec", dont_inherit=True)
    exec(code, module.__dict__)


def exit_code(asked: object) -> int:
    """The exit code of a SystemExit; a value that is not a number is printed, and means 1."""
    if asked is None:
        return 0
    if isinstance(asked, int):
        return asked & 0xFF if abs(asked) < 2**63 else 0xFF
    flush()
    words = str(asked)
    # In a cluster it is marked as an error, like messages of built-in programs.
    mark = "error: " if "CLUSTER_KIT_MAILBOX" in os.environ else ""
    print("" if words.lower().startswith("error") else mark, words, sep="", file=sys.stderr)
    leave_words(words)
    return 1


def refused_arguments(problem: SystemExit) -> str:
    """What argparse has said about the program's arguments; "" if something else ended it."""
    argparse, traceback = sys.modules.get("argparse"), problem.__traceback__
    while argparse and traceback:
        if traceback.tb_frame.f_code is argparse.ArgumentParser.error.__code__:
            said = traceback.tb_frame.f_locals
            return f"{said['self'].prog}: error: {said['message']}"
        traceback = traceback.tb_next
    return ""


def show(problem: BaseException) -> None:
    """Print the program's traceback without the frames of this file."""
    traceback = problem.__traceback__
    while traceback and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    sys.last_type, sys.last_value, sys.last_traceback = type(problem), problem, traceback
    flush()
    sys.excepthook(type(problem), problem.with_traceback(traceback), traceback)
    leave_words("".join(format_exception_only(type(problem), problem)))


def leave_words(text: str, name: str = LAST_WORDS) -> None:
    """Put the program's last message into the mailbox, since its log can be long and mixed.

    An existing message stays if it is part of this one, since it is more precise.
    """
    mailbox = os.environ.get("CLUSTER_KIT_MAILBOX")
    if not mailbox:
        return
    words = os.path.join(mailbox, name)  # noqa: PTH118
    with contextlib.suppress(OSError, UnicodeError):
        if os.path.exists(words):  # noqa: PTH110
            with open(words, encoding="utf-8") as before:  # noqa: PTH123
                if before.read().strip() in text:
                    return
        with open(words, "w", encoding="utf-8", errors="backslashreplace") as new:  # noqa: PTH123
            new.write(text)


def leave(code: int, killed_by: signal.Signals | None = None) -> NoReturn:
    """End the process in Python's order: threads, atexit, files, exit."""
    late = threading.Timer(THREADS_END_S, tell_threads)
    late.daemon = True
    if running_threads():
        late.start()
    threading._shutdown()
    late.cancel()
    if late.ident is not None:
        late.join(TOLD_S)  # it may be writing
    atexit._run_exitfuncs()
    if not flush():
        code = EXIT_STDOUT_LOST
    flush_what_is_open()
    if killed_by:
        signal.signal(killed_by, signal.SIG_DFL)
        os.kill(os.getpid(), killed_by)
    os._exit(code)


def running_threads() -> list[str]:
    """The names of the threads for which Python waits at the end of a program."""
    threads = [one for one in threading.enumerate() if one is not threading.main_thread()]
    return [one.name for one in threads if not one.daemon]


def tell_threads() -> None:
    """Say which threads keep the program from ending, also to the supervisor."""
    if names := ", ".join(running_threads()):
        text = f"its main thread has ended, but not {names}: end it, or make it a daemon thread"
        print(f"cluster-kit: the program does not end: {text}", file=sys.stderr, flush=True)
        leave_words(text, THREADS)


def flush_what_is_open() -> None:
    """Flush the files and TensorBoard writers that the program has not closed."""
    # Not `tensorflow.summary.flush()`: it imports TensorBoard, and without a writer it runs an op
    # that waits for all servers, for half a second or five.
    with contextlib.suppress(Exception):  # no TensorFlow, or no summaries
        writer = sys.modules["tensorflow.python.ops.summary_ops_v2"]._summary_state.writer
        if writer is not None:
            writer.flush()
    gc.unfreeze()
    for candidate in gc.get_objects():
        # Compare types: isinstance would load lazy modules among the objects.
        if issubclass(type(candidate), _io._IOBase):
            with contextlib.suppress(Exception):  # closed, read-only, or without a reader
                candidate.flush()
    if "ctypes" in sys.modules:
        sys.modules["ctypes"].CDLL(None).fflush(None)


def flush() -> bool:
    """Flush stdout and stderr; returns whether that succeeded."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream and not stream.closed:
                stream.flush()
    except (OSError, ValueError, AttributeError):
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
