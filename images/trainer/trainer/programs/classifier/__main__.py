"""`run classifier [ARG…]`: train, or evaluate if this task is the evaluator."""

from __future__ import annotations

import os
import sys

from trainer.agent.progress_file import Progress
from trainer.agent.task import EVALUATOR, Task
from trainer.programs.classifier import option_rules, options
from trainer.programs.training import program


def run(task: Task, arguments: list[str], progress: Progress | None) -> None:
    """Train, or score the checkpoints as the evaluator; raises TrainerError."""
    chosen = options.parse(arguments, program.data_directory(), task.output)
    if task.role == EVALUATOR:
        os.nice(10)
    else:
        option_rules.check(chosen, task)
    program.prepare_tensorflow()
    if task.role == EVALUATOR:
        from trainer.programs.classifier.evaluate import evaluate

        evaluate(chosen, progress)
    else:
        from trainer.programs.classifier.keras_training import train

        train(task, chosen, progress)


if __name__ == "__main__":
    program.main(run, sys.argv[1:])
