"""The frame of a built-in program: its start and end, errors, TensorFlow's import, and signals.

Signals (SIGTERM, SIGUSR1) and the file `save-now` arrive while TensorFlow trains. Python's
handlers wait until TensorFlow returns to the interpreter, which never happens in a step that waits
for a lost peer. So a thread reads the wakeup pipe, into which the C handler writes at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import format_exception_only
from typing import NoReturn, Optional

from trainer.agent import progress_file
from trainer.agent.errors import TrainerError
from trainer.agent.injected import imports, mailbox
from trainer.agent.progress_file import Progress
from trainer.agent.task import Task, read_task
from trainer.contract.endings import EXIT_TRAINING_FAILED

Run = Callable[[Task, list[str], Optional[Progress]], None]


def main(run: Run, arguments: list[str]) -> NoReturn:
    """Call `run` for this task, and end the process with 0 or the error's exit code."""
    try:
        run(read_task(), arguments, progress_file.from_environment())
    except TrainerError as problem:
        mailbox.leave_last_words(str(problem))
        if problem.final:
            mailbox.leave_last_words("", mailbox.FINAL)
        print(f"error: {problem}", file=sys.stderr)
        leave(problem.exit_code)  # inside of `except`, which keeps TensorFlow's frames alive
    except Exception as problem:
        mailbox.leave_last_words("".join(format_exception_only(type(problem), problem)))
        raise
    leave(0)


def leave(code: int) -> NoReturn:
    """End the process at once: TensorFlow takes up to 40 s to end a strategy."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def data_directory() -> Path:
    """Returns the directory of this task's data set."""
    return Path(os.environ.get("CLUSTER_KIT_DATA") or "/data")


def prepare_tensorflow() -> None:
    """Import TensorFlow, with tf_keras as tf.keras, and without warnings about retracing."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    with imports.made_faster():
        import tensorflow as tf

    tf.get_logger().setLevel("ERROR")


LOOK_S = 0.2


@contextlib.contextmanager
def watched(
    terminated: Callable[[], None],
    save_now: Callable[[], None] | None = None,
    file: Path | None = None,
) -> Iterator[None]:
    """In the block, call `terminated` on SIGTERM, `save_now` on SIGUSR1 or if `file` appears.

    A thread calls both; `file` is removed first. Python can set signal handlers only in the main
    thread: in other threads only the file is watched.
    """
    numbers = (signal.SIGTERM, signal.SIGUSR1) if save_now else (signal.SIGTERM,)
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            ready, _, _ = select.select([read], [], [], LOOK_S)
            received = os.read(read, 64) if ready else b""
            if signal.SIGTERM in received:
                terminated()
            if save_now and (signal.SIGUSR1 in received or appeared(file)):
                save_now()

    watcher = threading.Thread(target=watch, name="signals", daemon=True)
    in_main = threading.current_thread() is threading.main_thread()
    if in_main:
        wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        kept = {s: signal.signal(s, lambda *_: None) for s in numbers}
    watcher.start()
    try:
        yield
    finally:
        if in_main:
            for number, handler in kept.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
        done.set()
        watcher.join(2 * LOOK_S)
        if not watcher.is_alive():
            os.close(read)
            os.close(write)


def appeared(file: Path | None) -> bool:
    """Return whether the file exists, and remove it."""
    if file is None:
        return False
    try:
        file.unlink()
    except OSError:
        return False
    return True


class PeerLost(TrainerError):
    """A task that this one depends on was lost, and did not come back in time."""

    exit_code = EXIT_TRAINING_FAILED


class Diverged(TrainerError):
    """The loss or a variable is not finite (NaN or infinite)."""

    exit_code = EXIT_TRAINING_FAILED


class CheckpointError(TrainerError):
    """Existing checkpoints cannot be used, or a new one cannot be written."""

    exit_code = EXIT_TRAINING_FAILED


def headline(problem: BaseException) -> str:
    """Return the most useful line of a long TensorFlow message, at most 200 characters."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    lines = [line for line in lines if not line.endswith(":")] or lines  # without headings
    for before, line in zip(lines, lines[1:]):
        if before.startswith("Node: "):
            return line[:200]
    return lines[0][:200] if lines else type(problem).__name__


STEPS = "steps"
"""The last step was made."""
THRESHOLD = "loss-threshold"
"""The mean loss reached the threshold."""
NOTHING = "nothing"
"""There was nothing to do: an earlier run had made the last step."""
_WHY = {
    STEPS: "its last step is made",
    THRESHOLD: "its loss is below the threshold",
    NOTHING: "an earlier run had made its last step",
}


def end_sentence(step: int, reached: str) -> str:
    """Returns a line for the log: where the job ended, and why."""
    return f"the job ended at global step {step}: {_WHY[reached]}"


def checkpoint_directory(output: Path) -> Path:
    """Returns the directory of checkpoints, below the output directory."""
    return output / "checkpoints"
