"""Training in graph mode: the detector as a GraphJob."""

from __future__ import annotations

import math

import tensorflow as tf

from trainer.agent.progress_file import Progress
from trainer.agent.task import Task
from trainer.programs.detection import mode
from trainer.programs.detection.config.pipeline import Pipeline
from trainer.programs.detection.data import input_pipeline
from trainer.programs.detection.data.input_pipeline import Batch
from trainer.programs.detection.model import loss, ssd, weights
from trainer.programs.detection.model.ssd import Detector
from trainer.programs.detection.options import Options
from trainer.programs.detection.train import checkpoint_manager, optimizers
from trainer.programs.training import result
from trainer.programs.training.graph_mode import replica
from trainer.programs.training.graph_mode.job import GraphJob, ModelLoss
from trainer.programs.training.graph_mode.run import run
from trainer.programs.training.program import NOTHING, end_sentence

tf1 = tf.compat.v1


def train(task: Task, options: Options, progress: Progress | None) -> None:
    """Train this task's replica to the end; the leader prepares, saves and scores."""
    train_config = options.pipeline.train_config
    replicas = len(replica.addresses_of_replicas(task))
    graph = mode.decided(options.graph, train_config, options.given, replicas)
    own_replica = replica.replica_of(task, graph, len(tf.config.list_physical_devices("GPU")))
    checked = checkpoint_manager.prepare(options) if own_replica.is_chief else None
    if own_replica.is_chief:
        checkpoint_manager.tell(options, task, graph.update)
    outcome = run(task, graph_job(options.pipeline), graph, progress)
    print(end_sentence(outcome.step, outcome.reached), flush=True)
    if checked is None or outcome.checkpoint is None:
        return
    if outcome.reached == NOTHING and result.report_again(options.output, progress):
        return
    figures = outcome.metrics() | {"reached": outcome.reached, "mode": graph.update}
    checkpoint_manager.finish(options, checked, str(outcome.checkpoint), figures, progress)


def graph_job(pipeline: Pipeline) -> GraphJob:
    """Returns the detector of `pipeline` as a job for graph mode."""
    train = pipeline.train_config
    return GraphJob(
        inputs=lambda number, count: input_pipeline.training(pipeline, number, count),
        build=lambda: built(pipeline),
        loss=lambda detector, batch: model_loss(pipeline, detector, batch),
        optimizer=lambda step: optimizers.kept_by(
            optimizers.graph_optimizer(
                train, optimizers.rate_at(step, train.learning_rate, train.num_steps)
            ),
            train.optimizer,
        ),
        examples_per_batch=train.batch_size,
        clip_norm=train.gradient_clipping_by_norm,
        startup_delay_steps=math.ceil(train.startup_delay_steps),
    )


def built(pipeline: Pipeline) -> Detector:
    """Return the detector; if there is a fine-tune checkpoint, variables start from its values."""
    train = pipeline.train_config
    detector = ssd.build(pipeline.model, train.seed)
    if train.fine_tune_checkpoint:
        fitting = weights.to_start_from(train, detector.network.weights)
        tf1.train.init_from_checkpoint(train.fine_tune_checkpoint, fitting)
    return detector


def model_loss(pipeline: Pipeline, detector: Detector, batch: Batch) -> ModelLoss:
    """Returns the loss of one batch: its mean, its two parts, and BatchNorm's updates."""
    network = detector.network
    before = list(network.updates)
    predictions = network(batch.images, training=True)
    averages_updates = [u for u in network.updates if not any(u is old for old in before)]
    parts = detector.loss.parts(loss.truth(batch.boxes, batch.classes), predictions)
    shown = {
        "localization": tf.reduce_mean(parts.localization),
        "classification": tf.reduce_mean(parts.classification),
    }
    total = tf.reduce_mean(parts.total)
    if pipeline.model.l2_weight:
        total += ssd.weight_decay(network, pipeline.model.l2_weight)
    return ModelLoss(total, shown, averages_updates)
