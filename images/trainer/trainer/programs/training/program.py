"""The frame of a built-in program: its task, its errors, TensorFlow's import, and a quick end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from traceback import format_exception_only
from typing import NoReturn, Optional

from trainer.agent import progress_file
from trainer.agent.errors import TrainerError
from trainer.agent.injected import gc_pause, mailbox
from trainer.agent.progress_file import Progress
from trainer.agent.task import Task, read_task

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
        leave(problem.exit_code)  # here, while the problem keeps TensorFlow's frames alive
    except Exception as problem:
        mailbox.leave_last_words("".join(format_exception_only(type(problem), problem)))
        raise
    leave(0)


def leave(code: int) -> NoReturn:
    """End at once: TensorFlow takes up to 40 s to end a strategy, and waits for lost peers."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def data_directory() -> Path:
    """Where this task finds its data set."""
    return Path(os.environ.get("CLUSTER_KIT_DATA") or "/data")


def prepare_tensorflow() -> None:
    """Import it with tf_keras as tf.keras, and without its advice about retracing at each save."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    with gc_pause.left_alone():
        import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
