"""Training, as chief under ParameterServerStrategy or alone in one task."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import time

import tensorflow as tf

from trainer import mailbox
from trainer.classifier import checkpoints, data, files, mode, model
from trainer.classifier.callbacks import EpochReport, callbacks
from trainer.classifier.options import Options
from trainer.errors import ContractError
from trainer.progress import Progress
from trainer.task import Task

MIN_SHARD_BYTES = 256 << 10


def train(task: Task, options: Options, progress: Progress | None) -> None:
    """Train this task's part, in the way that the options and the cluster decide."""
    how = mode.decide(options.strategy, task.cluster, task.servers)
    if how == mode.GRAPH:
        from trainer.classifier.graph import train_graph

        train_graph(task, options, progress)
    else:
        train_eagerly(task, options, progress)


def train_eagerly(task: Task, options: Options, progress: Progress | None) -> None:
    """Train to the last epoch (from where an earlier run stopped), score on Test, and save."""
    classes = files.class_names(options.data)
    train_split, _, test_split = (
        files.split(options.data, name, classes)
        for name in (files.TRAIN, files.VALIDATE, files.TEST)
    )
    files.check_images(train_split.paths + test_split.paths)
    steps = options.steps_per_epoch or math.ceil(len(train_split.paths) / options.batch_size)
    first_epoch = epoch_to_resume(options)
    if first_epoch >= options.epochs and (options.output / "result.json").exists():
        print(f"nothing to do: {first_epoch} of {options.epochs} epochs are trained", flush=True)
        return
    print(
        f"{len(train_split.paths)} training images, {len(classes)} classes; {options.epochs}"
        f" epochs of {steps} steps, {options.batch_size} images each",
        flush=True,
    )
    mailbox.wait_for_servers()
    strategy = make_strategy(task)
    with strategy.scope() if strategy else contextlib.nullcontext():
        network = model.build(options, len(classes))
        if first_epoch:
            network.optimizer.build(network.trainable_variables)
            network.load_weights(checkpoints.find(options.output)[-1].path)
    if task.cluster.get("ps"):
        print(model.placement(network), flush=True)
    report = fit(network, options, train_split, len(classes), steps, first_epoch, progress, task)
    finish(options, classes, test_split, report, progress)


def epoch_to_resume(options: Options) -> int:
    """Epochs that an earlier, finished run left behind; 0 where BackupAndRestore will resume."""
    if (options.output / "backup" / "chief" / "checkpoint").exists():
        return 0
    found = checkpoints.find(options.output)
    return found[-1].epoch if found else 0


def make_strategy(task: Task) -> tf.distribute.Strategy | None:
    """ParameterServerStrategy for a cluster with ps tasks; a lone task trains on its devices."""
    if task.cluster.get("ps") and task.cluster.get("worker"):
        return tf.distribute.ParameterServerStrategy(
            tf.distribute.cluster_resolver.TFConfigClusterResolver(),
            variable_partitioner=tf.distribute.experimental.partitioners.MinSizePartitioner(
                MIN_SHARD_BYTES, max_shards=len(task.cluster["ps"])
            ),
        )
    if len(task.cluster.get("worker", ())) + len(task.cluster.get("chief", ())) > 1:
        raise ContractError(
            "several workers but no ps: the classifier trains by ParameterServerStrategy;"
            " add ps tasks, or use one worker alone"
        )
    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    devices = [device.name for device in tf.config.list_logical_devices(kind)]
    print(f"training on {', '.join(name.partition(':')[2] for name in devices)}", flush=True)
    return tf.distribute.MirroredStrategy(devices) if len(devices) > 1 else None


def fit(
    network: tf.keras.Model,
    options: Options,
    split: files.Split,
    classes: int,
    steps: int,
    first_epoch: int,
    progress: Progress | None,
    task: Task,
) -> EpochReport:
    """Run the epochs that are left; each of `steps` steps of one worker's batch."""
    report, accompanying = callbacks(options, progress)
    workers = max(1, len(task.cluster.get("worker", ())))

    def dataset(_: tf.distribute.InputContext | None = None) -> tf.data.Dataset:
        return data.training_set(split, classes, options, workers, data.worker_index())

    creator = tf.keras.utils.experimental.DatasetCreator
    network.fit(
        creator(dataset) if task.cluster.get("ps") else dataset(),
        epochs=options.epochs,
        initial_epoch=first_epoch,
        steps_per_epoch=steps,
        callbacks=accompanying,
        verbose=0,
    )
    return report


def finish(
    options: Options,
    classes: tuple[str, ...],
    test_split: files.Split,
    report: EpochReport,
    progress: Progress | None,
) -> None:
    """Score the last checkpoint on Test in a plain model of our own, and save that model."""
    began = time.monotonic()
    plain = model.build(options, len(classes))
    plain.load_weights(checkpoints.find(options.output)[-1].path).expect_partial()
    tested = plain.evaluate(
        data.scoring_set(test_split, len(classes), options), verbose=0, return_dict=True
    )
    result = {
        "test_accuracy": round(tested["accuracy"], 6),
        "test_loss": round(tested["loss"], 6),
        "steps_per_second": report.steps_per_s,
        "epochs": options.epochs,
        "classes": list(classes),
    }
    scored = time.monotonic()
    export(plain, options.output / "model")
    (options.output / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    if progress:
        figures = ("test_accuracy", "test_loss", "steps_per_second")
        progress.write("metrics", **{key: result[key] for key in figures})
    print(
        f"test accuracy {result['test_accuracy']:.4f}, loss {result['test_loss']:.4f};"
        f" {result['steps_per_second']} steps/s; scored in {scored - began:.1f} s, model saved in"
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
