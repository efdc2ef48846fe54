"""python3 -m trainer.classifier [ARG…]: train, or evaluate where this task is the evaluator."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from trainer import garbage, mailbox, progress
from trainer.classifier import options
from trainer.errors import TrainerError
from trainer.task import EVALUATOR, Task, read_task


def main(arguments: list[str]) -> NoReturn:
    """Run this task's part and end the process."""
    try:
        task = read_task()
        chosen = options.parse(arguments, data_directory(), task.output)
        run(task, chosen)
    except TrainerError as problem:
        mailbox.leave_last_words(str(problem))
        print(f"error: {problem}", file=sys.stderr)
        leave(problem.exit_code)  # here, while the problem keeps TensorFlow's frames alive
    leave(0)


def leave(code: int) -> NoReturn:
    """End at once: interpreter and TensorFlow take up to 40 s to take down a strategy."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def data_directory() -> Path:
    return Path(os.environ.get("CLUSTER_KIT_DATA") or "/data")


def run(task: Task, chosen: options.Options) -> None:
    if task.role == EVALUATOR:
        os.nice(10)
    prepare_tensorflow()
    if task.role == EVALUATOR:
        from trainer.classifier.evaluate import evaluate

        evaluate(chosen, progress.from_environment())
    else:
        from trainer.classifier.train import train

        train(task, chosen, progress.from_environment())


def prepare_tensorflow() -> None:
    """Import it with tf_keras as tf.keras, and without its advice about retracing at each save."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    with garbage.left_alone():
        import tensorflow as tf

    tf.get_logger().setLevel("ERROR")


if __name__ == "__main__":
    main(sys.argv[1:])
