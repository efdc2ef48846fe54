"""python3 -m trainer.classifier [ARG…]: train, or evaluate where this task is the evaluator."""

from __future__ import annotations

import os
import sys

from trainer import program
from trainer.classifier import options
from trainer.progress import Progress
from trainer.task import EVALUATOR, Task


def run(task: Task, arguments: list[str], progress: Progress | None) -> None:
    chosen = options.parse(arguments, program.data_directory(), task.output)
    if task.role == EVALUATOR:
        os.nice(10)
    program.prepare_tensorflow()
    if task.role == EVALUATOR:
        from trainer.classifier.evaluate import evaluate

        evaluate(chosen, progress)
    else:
        from trainer.classifier.train import train

        train(task, chosen, progress)


if __name__ == "__main__":
    program.main(run, sys.argv[1:])
