"""Runs the epochs, by tf_keras' `fit` or in rounds, with the input that each way wants."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from trainer.classifier import data, files, mode
from trainer.classifier.callbacks import EpochReport, callbacks
from trainer.classifier.interruption import Interruption
from trainer.classifier.options import Options
from trainer.classifier.plan import Plan
from trainer.graph import signals
from trainer.progress import Progress
from trainer.task import Task
from trainer.where import worker_index


def fit(
    network: tf.keras.Model,
    plan: Plan,
    options: Options,
    split: files.Split,
    classes: int,
    progress: Progress | None,
    task: Task,
) -> EpochReport:
    """Run the epochs that are left."""
    report, accompanying = callbacks(options, plan, progress, leads=task.is_leader)
    interruption = Interruption(task, options, plan)
    accompanying.append(interruption)
    workers = len(task.cluster.get("worker", ()))

    def for_worker() -> tf.data.Dataset:
        return data.training_set(split, classes, options, workers, worker_index())

    def for_peer(context: tf.distribute.InputContext) -> tf.data.Dataset:
        devices = context.num_replicas_in_sync // context.num_input_pipelines
        share = dataclasses.replace(options, batch_size=options.batch_size // devices)
        pipelines, index = context.num_input_pipelines, context.input_pipeline_id
        return data.training_set(split, classes, share, pipelines, index)

    creator = tf.keras.utils.experimental.DatasetCreator
    inputs = {
        mode.PARAMETER_SERVER: lambda: creator(lambda _: for_worker()),
        mode.ALL_REDUCE: lambda: creator(for_peer),
        mode.MIRRORED: lambda: data.training_set(split, classes, options, 1, 0),
    }
    first, steps = plan.first_epoch, plan.steps
    with signals.watched(interruption.terminated):
        if plan.how == mode.PARAMETER_SERVER and options.update == mode.SYNC:
            from trainer.classifier.rounds import Rounds, fit_in_rounds

            rounds = Rounds(network, for_worker, workers)
            fit_in_rounds(
                rounds, network, options, steps, first, accompanying, interruption.between_steps
            )
        else:
            network.fit(
                inputs[plan.how](),
                epochs=options.epochs,
                initial_epoch=first,
                steps_per_epoch=steps,
                callbacks=accompanying,
                verbose=0,
            )
    return report
