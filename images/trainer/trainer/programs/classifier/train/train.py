"""Training, as the chief of parameter servers, with others by all-reduce, or alone in one task."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator, Mapping

import tensorflow as tf

from trainer.errors import TrainerError
from trainer.events import Progress
from trainer.injected import mailbox
from trainer.programs.classifier import mode
from trainer.programs.classifier.data import files, input_pipeline
from trainer.programs.classifier.model import architecture, checkpoints, weights
from trainer.programs.classifier.options import Options
from trainer.programs.classifier.schedule import Plan, plan_of
from trainer.programs.classifier.train import strategies
from trainer.programs.classifier.train.fit import fit
from trainer.programs.classifier.train.interruption import Resumable
from trainer.programs.classifier.train.peers import Peers
from trainer.programs.classifier.train.staleness import AsynchronousModel, Staleness
from trainer.task import Task
from trainer.training import result


def train(task: Task, options: Options, progress: Progress | None) -> None:
    """Train this task's part, in the way that the options and the cluster decide."""
    how = mode.decide(options.strategy, task.cluster, task.servers)
    if how == mode.GRAPH:
        from trainer.programs.classifier.train.graph import train_graph

        train_graph(task, options, progress)
    else:
        train_eagerly(how, task, options, progress)


def train_eagerly(how: str, task: Task, options: Options, progress: Progress | None) -> None:
    """Train to the last epoch (from where an earlier run stopped), score on Test, and save.

    The leader alone scores and saves, and writes down what it did.
    """
    classes = files.class_names(options.data)
    train_split, _, test_split = (
        files.split(options.data, name, classes)
        for name in (files.TRAIN, files.VALIDATE, files.TEST)
    )
    files.check_images(train_split.paths + test_split.paths)
    first_epoch = epoch_to_resume(options)
    plan = plan_of(how, task, options, len(train_split.paths), first_epoch)
    if first_epoch >= options.epochs and (
        not task.is_leader or result.tell_again(options.output, progress)
    ):
        print(f"nothing to do: {first_epoch} of {options.epochs} epochs are trained", flush=True)
        return
    print(
        f"{len(train_split.paths)} training images, {len(classes)} classes; {options.epochs}"
        f" epochs of {plan.steps} steps, {plan.images_per_step} images each",
        flush=True,
    )
    mailbox.wait_for_servers()
    figures: Mapping[str, float] = {}
    if first_epoch < options.epochs:
        network = prepared(plan, task, options, len(classes))
        with servers_may_be_lost() if how != mode.ALL_REDUCE else Peers(task).may_be_lost():
            report = fit(network, plan, options, train_split, len(classes), progress, task)
        figures = report.figures()
    if task.is_leader:
        finish(options, classes, test_split, figures, progress)


def prepared(plan: Plan, task: Task, options: Options, classes: int) -> tf.keras.Model:
    """The model in its strategy's scope, with the weights of an earlier run's last epoch."""
    asynchronous = plan.how == mode.PARAMETER_SERVER and options.update == mode.ASYNC
    with servers_may_be_lost():
        strategy = strategies.make(plan.how, task, options)
        with strategy.scope() if strategy else contextlib.nullcontext():
            network = architecture.build(
                options, classes, AsynchronousModel if asynchronous else Resumable
            )
            if asynchronous:
                network.staleness = Staleness()
            network.optimizer.build(network.trainable_variables)
            if plan.first_epoch:
                network.load_weights(checkpoints.find(options.output)[-1].path)
    if plan.how == mode.PARAMETER_SERVER:
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
    """Epochs that an earlier, finished run left behind; 0 where BackupAndRestore will resume."""
    if (options.output / "backup" / "chief" / "checkpoint").exists():
        return 0
    found = checkpoints.find(options.output)
    return found[-1].epoch if found else 0


def finish(
    options: Options,
    classes: tuple[str, ...],
    test_split: files.Split,
    figures: Mapping[str, float],
    progress: Progress | None,
) -> None:
    """Score the last checkpoint on Test in a plain model of our own, and save that model.

    Args:
        figures: of the training, as EpochReport.figures; added to the `metrics` event.
    """
    began = time.monotonic()
    plain = architecture.build(options, len(classes))
    weights.load(checkpoints.find(options.output)[-1].path, plain)
    tested = plain.evaluate(
        input_pipeline.scoring_set(test_split, len(classes), options), verbose=0, return_dict=True
    )
    accuracy, loss = round(tested["accuracy"], 6), round(tested["loss"], 6)
    scored = time.monotonic()
    export(plain, options.output / "model")
    metrics = {"test_accuracy": accuracy, "test_loss": loss, **figures}
    result.write(options.output, metrics, classes, progress)
    speed = f"{figures['steps_per_second']:g} steps/s; " if "steps_per_second" in figures else ""
    print(
        f"test accuracy {accuracy:.4f}, loss {loss:.4f};"
        f" {speed}scored in {scored - began:.1f} s, model saved in"
        f" {time.monotonic() - scored:.1f} s",
        flush=True,
    )


def export(network: tf.keras.Model, target: object) -> None:
    """Write a SavedModel beside `target`, then put it in its place.

    It takes images [n, size, size, 3] in 0…255 and returns probabilities: `serving_default`, and
    `serve` for tf.saved_model.load.
    """
    new, old = target.with_name(f".{target.name}.new"), target.with_name(f".{target.name}.old")
    for left_over in (new, old):
        shutil.rmtree(left_over, ignore_errors=True)
    serve = tf.function(
        lambda image: {"probabilities": network(image, training=False)},
        input_signature=[tf.TensorSpec(network.input_shape, tf.float32, "image")],
    )
    archive = tf.Module()
    archive.weights, archive.serve = network.weights, serve
    tf.saved_model.save(archive, str(new), signatures=serve)
    if target.exists():
        target.rename(old)
    new.rename(target)
    shutil.rmtree(old, ignore_errors=True)
