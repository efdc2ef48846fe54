"""`run detection [ARG…]`: train, or score if this task is the evaluator."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from trainer.agent.progress_file import Progress
from trainer.agent.task import EVALUATOR, Task
from trainer.programs.detection import classic, mode, options
from trainer.programs.training import program


def run(task: Task, arguments: list[str], progress: Progress | None) -> None:
    """Train, or score the checkpoints as the evaluator; raises TrainerError."""
    chosen = options.parse(arguments, program.data_directory(), task.output)
    classic.check(chosen.claims, task)
    task = replace(task, output=chosen.output)
    if task.role == EVALUATOR:
        os.nice(10)
        program.prepare_tensorflow()
        from trainer.programs.detection.evaluate.evaluate import evaluate

        evaluate(chosen, progress)
        return
    how = mode.decide(chosen.mode, task, chosen.graph, chosen.pipeline.train_config, chosen.given)
    program.prepare_tensorflow()
    if how == mode.COORDINATOR:
        from trainer.programs.detection.train.coordinator import train
    else:
        from trainer.programs.detection.train.graph_mode import train
    train(task, chosen, progress)


if __name__ == "__main__":
    program.main(run, sys.argv[1:])
