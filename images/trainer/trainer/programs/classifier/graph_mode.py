"""The classifier in graph mode, with between-graph replication; model and data as in tf_keras."""

from __future__ import annotations

from dataclasses import replace

import tensorflow as tf

from trainer.agent.progress_file import Progress
from trainer.agent.task import Task
from trainer.programs.classifier import classifier_model, image_files, input_pipeline, mode
from trainer.programs.classifier.checkpoints import prune
from trainer.programs.classifier.evaluate import finish
from trainer.programs.classifier.options import Options
from trainer.programs.classifier.schedule import Schedule, schedule_of
from trainer.programs.training import result
from trainer.programs.training.board import write_hyperparameters
from trainer.programs.training.graph_mode.job import GraphJob, ModelLoss
from trainer.programs.training.graph_mode.replica_graph import updates_of
from trainer.programs.training.graph_mode.run import run
from trainer.programs.training.program import NOTHING, end_sentence

tf1 = tf.compat.v1
keras = tf.keras
EPSILON = 1e-7
"""The default of Adam in tf_keras."""


def train_graph(task: Task, options: Options, progress: Progress | None) -> None:
    """Train this task's replica; the leader also scores the model on Test, and saves it."""
    classes, train_split, test_split = image_files.to_train_on(options)
    image_files.tell(options, train_split, test_split)
    per_clone = of_one_clone(options)
    schedule = schedule_of(mode.GRAPH, task, options, len(train_split.paths))
    epochs = f"{options.epochs} epoch{'s' if options.epochs != 1 else ''}"
    print(
        f"{len(train_split.paths)} training images, {len(classes)} classes; {epochs}"
        f" of {schedule.steps_per_epoch} steps, {schedule.images_per_step} images each",
        flush=True,
    )
    if task.is_leader:
        hyperparameters = {**options.hyperparameters, "strategy": mode.GRAPH}
        write_hyperparameters(options.output, task.cluster, hyperparameters)
    if progress:
        progress.write("training", strategy=mode.GRAPH, images_per_step=schedule.images_per_step)
    outcome = run(
        task,
        GraphJob(
            inputs=lambda replica, replicas: input_pipeline.training_set(
                train_split, len(classes), per_clone, replicas, replica
            ),
            build=lambda: classifier_model.new_model(options, len(classes)),
            loss=loss,
            optimizer=lambda step: tf1.train.AdamOptimizer(
                learning_rate(options, schedule, step), epsilon=EPSILON
            ),
            examples_per_batch=per_clone.batch_size,
            milestone_steps=schedule.steps_per_epoch,
            on_milestone=lambda: prune(options.output, options.graph.keep),
        ),
        replace(
            options.graph,
            steps=schedule.steps,
            update=options.update,
            keep=options.graph.keep if "keep" in options.given else 1,
        ),
        progress,
    )
    if not outcome.is_chief:
        print(end_sentence(outcome.step, outcome.reached), flush=True)
    elif outcome.reached == NOTHING and result.report_again(options.output, progress):
        print(f"nothing to do: {outcome.step} of {schedule.steps} steps are trained", flush=True)
    else:
        figures = outcome.metrics() | {"reached": outcome.reached}
        finish(options, classes, test_split, figures, progress)


def of_one_clone(options: Options) -> Options:
    """Returns the options with the batch size of one clone: clones share a worker's batch
    evenly."""
    return replace(options, batch_size=options.batch_size // options.graph.num_clones)


def learning_rate(options: Options, schedule: Schedule, step: tf.Tensor) -> tf.Tensor:
    """The learning rate of --learning-rates for the epoch of the global step."""
    first_epochs, rates = zip(*options.learning_rates)
    if len(rates) == 1:
        return tf.constant(rates[0])
    last_steps = [epoch * schedule.steps_per_epoch - 1 for epoch in first_epochs[1:]]
    return tf1.train.piecewise_constant(step, last_steps, list(rates))


def loss(network: keras.Model, batch: tuple[tf.Tensor, tf.Tensor]) -> ModelLoss:
    """Returns the loss of one batch (images, one-hot labels), its accuracy, and BatchNorm's
    updates."""
    inputs, labels = batch
    predicted = network(inputs, training=True)
    total = tf.reduce_mean(keras.losses.categorical_crossentropy(labels, predicted))
    right = tf.equal(tf.argmax(predicted, 1), tf.argmax(labels, 1))
    return ModelLoss(
        total=tf.add_n([total, *network.losses]),
        shown={"accuracy": tf.reduce_mean(tf.cast(right, tf.float32))},
        updates=updates_of(network, inputs),
    )
