"""Training, as the chief of parameter servers, with others by all-reduce, or alone in one task."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import tensorflow as tf

from trainer.agent.errors import TrainerError
from trainer.agent.injected import mailbox
from trainer.agent.progress_file import Progress
from trainer.agent.task import Task
from trainer.programs.classifier import mode
from trainer.programs.classifier.data import images
from trainer.programs.classifier.model import architecture, checkpoints
from trainer.programs.classifier.options import Options
from trainer.programs.classifier.schedule import Schedule, schedule_of
from trainer.programs.classifier.train import clones, strategies
from trainer.programs.classifier.train.finish import finish
from trainer.programs.classifier.train.fit import fit
from trainer.programs.classifier.train.graph_mode import train_graph
from trainer.programs.classifier.train.interruption import Resumable
from trainer.programs.classifier.train.other_trainers import OtherTrainers
from trainer.programs.classifier.train.staleness import AsynchronousModel, Staleness
from trainer.programs.training import result
from trainer.programs.training.board import tell_hyperparameters


def train(task: Task, options: Options, progress: Progress | None) -> None:
    """Train this task's part, in the way that the options and the cluster decide."""
    how = mode.decide(options.strategy, task.cluster, task.servers)
    if how == mode.GRAPH:
        train_graph(task, options, progress)
    else:
        train_eagerly(how, task, options, progress)


def train_eagerly(how: str, task: Task, options: Options, progress: Progress | None) -> None:
    """Train to the last epoch (from where an earlier run stopped), score on Test, and save.

    The leader alone scores and saves, and writes down what it did.
    """
    classes, train_split, test_split = images.to_train_on(options)
    first_epoch = epoch_to_resume(options)
    schedule = schedule_of(how, task, options, len(train_split.paths), first_epoch)
    if first_epoch >= options.epochs and (
        not task.is_leader or result.tell_again(options.output, progress)
    ):
        print(f"nothing to do: {first_epoch} of {options.epochs} epochs are trained", flush=True)
        return
    images.tell(options, train_split, test_split)
    epochs = f"{options.epochs} epoch{'s' if options.epochs != 1 else ''}"
    print(
        f"{len(train_split.paths)} training images, {len(classes)} classes; {epochs}"
        f" of {schedule.steps_per_epoch} steps, {schedule.images_per_step} images each",
        flush=True,
    )
    mailbox.wait_for_servers()
    if task.is_leader:
        told = {**options.hyperparameters, "strategy": how}
        tell_hyperparameters(options.output, task.cluster, told)
    figures: Mapping[str, float] = {}
    if first_epoch < options.epochs:
        network = prepared(schedule, task, options, len(classes))
        with servers_may_be_lost() if how != mode.ALL_REDUCE else OtherTrainers(task).may_be_lost():
            report = fit(network, schedule, options, train_split, len(classes), progress, task)
        figures = report.figures()
    if task.is_leader:
        finish(options, classes, test_split, figures, progress)


def prepared(schedule: Schedule, task: Task, options: Options, classes: int) -> tf.keras.Model:
    """The model in its strategy's scope, with the weights of an earlier run's last epoch."""
    asynchronous = schedule.strategy == mode.PARAMETER_SERVER and options.update == mode.ASYNC
    with servers_may_be_lost():
        strategy = strategies.make(schedule.strategy, task, options)
        with strategy.scope() if strategy else contextlib.nullcontext():
            network = architecture.build(
                options, classes, AsynchronousModel if asynchronous else Resumable
            )
            if asynchronous:
                network.staleness = Staleness()
            network.clone_devices = strategies.clone_devices(schedule.strategy, task, options)
            network.optimizer.build(network.trainable_variables)
            if schedule.first_epoch:
                network.load_weights(checkpoints.find(options.output)[-1].path)
    if network.clone_devices:
        print(clones.said(network.clone_devices), flush=True)
    if schedule.strategy == mode.PARAMETER_SERVER:
        print(architecture.placement(network), flush=True)
    return network


@contextlib.contextmanager
def servers_may_be_lost() -> Iterator[None]:
    """One line instead of TensorFlow's fifty, for what the supervisor will repair."""
    try:
        yield
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as problem:
        raise TrainerError("the connection to a server was lost") from problem


def epoch_to_resume(options: Options) -> int:
    """Epochs that an earlier, finished run left behind; 0 if BackupAndRestore will resume."""
    if (options.output / "backup" / "chief" / "checkpoint").exists():
        return 0
    existing = checkpoints.find(options.output)
    return existing[-1].epoch if existing else 0
