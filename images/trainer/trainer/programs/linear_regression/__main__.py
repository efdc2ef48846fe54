"""`run linear-regression [ARG…]`: train the line, and check the result."""

from __future__ import annotations

import sys

from trainer.agent.progress_file import Progress
from trainer.agent.task import Task
from trainer.programs.linear_regression import options
from trainer.programs.training import program


def run(task: Task, arguments: list[str], progress: Progress | None) -> None:
    """Train this task's replica; raises TrainerError."""
    chosen = options.parse(arguments, program.data_directory())
    program.prepare_tensorflow()
    from trainer.programs.linear_regression.regression import train

    train(task, chosen, progress)


if __name__ == "__main__":
    program.main(run, sys.argv[1:])
