"""Runs the epochs, by tf_keras' `fit` or in rounds, with the input that each way wants."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from trainer.agent.injected.for_programs.cluster_kit_input import worker_index
from trainer.agent.progress_file import Progress
from trainer.agent.task import Task
from trainer.programs.classifier import mode
from trainer.programs.classifier.data import files, input_pipeline
from trainer.programs.classifier.options import Options
from trainer.programs.classifier.schedule import Schedule
from trainer.programs.classifier.train.callbacks import EpochReport, callbacks
from trainer.programs.classifier.train.interruption import Interruption
from trainer.programs.classifier.train.sync_rounds import SyncRounds, fit_in_rounds
from trainer.programs.training import signals


def fit(
    network: tf.keras.Model,
    schedule: Schedule,
    options: Options,
    split: files.Split,
    classes: int,
    progress: Progress | None,
    task: Task,
) -> EpochReport:
    """Run the epochs that are left."""
    report, accompanying = callbacks(options, schedule, progress, leads=task.is_leader)
    interruption = Interruption(task, options, schedule)
    accompanying.append(interruption)
    workers = len(task.cluster.get("worker", ()))

    def for_worker() -> tf.data.Dataset:
        return input_pipeline.training_set(split, classes, options, workers, worker_index())

    def for_peer(context: tf.distribute.InputContext) -> tf.data.Dataset:
        devices = context.num_replicas_in_sync // context.num_input_pipelines
        share = dataclasses.replace(options, batch_size=options.batch_size // devices)
        pipelines, index = context.num_input_pipelines, context.input_pipeline_id
        return input_pipeline.training_set(split, classes, share, pipelines, index)

    creator = tf.keras.utils.experimental.DatasetCreator
    inputs = {
        mode.PARAMETER_SERVER: lambda: creator(lambda _: for_worker()),
        mode.ALL_REDUCE: lambda: creator(for_peer),
        mode.MIRRORED: lambda: input_pipeline.training_set(split, classes, options, 1, 0),
    }
    first, steps = schedule.first_epoch, schedule.steps_per_epoch
    with signals.watched(interruption.terminated):
        if schedule.strategy == mode.PARAMETER_SERVER and options.update == mode.SYNC:
            rounds = SyncRounds(network, for_worker, workers)
            fit_in_rounds(
                rounds, network, options, steps, first, accompanying, interruption.between_steps
            )
        else:
            network.fit(
                inputs[schedule.strategy](),
                epochs=options.epochs,
                initial_epoch=first,
                steps_per_epoch=steps,
                callbacks=accompanying,
                verbose=0,
            )
    return report
