"""python3 -m trainer.linear_regression [ARG…]"""

from __future__ import annotations

import sys

from trainer import program
from trainer.linear_regression import options
from trainer.progress import Progress
from trainer.task import Task


def run(task: Task, arguments: list[str], progress: Progress | None) -> None:
    chosen = options.parse(arguments)
    program.prepare_tensorflow()
    from trainer.linear_regression.regression import train

    train(task, chosen, progress)


if __name__ == "__main__":
    program.main(run, sys.argv[1:])
