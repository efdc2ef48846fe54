"""Training by a coordinator: the chief sends steps to served workers (ParameterServerStrategy).

The chief sends steps in rounds. Between two rounds no gradient is in transit, so the program checks
the loss and writes checkpoints there.
"""

from __future__ import annotations

import tensorflow as tf

from trainer.agent.errors import TrainerError
from trainer.agent.injected import mailbox
from trainer.agent.injected.for_programs.cluster_kit_input import worker_index
from trainer.agent.progress_file import Progress
from trainer.agent.task import Task
from trainer.programs.detection.data import input_pipeline
from trainer.programs.detection.data.input_pipeline import Batch
from trainer.programs.detection.model import loss, ssd, weights
from trainer.programs.detection.model.ssd import Detector
from trainer.programs.detection.options import Options
from trainer.programs.detection.train import checkpoint_manager, optimizers
from trainer.programs.detection.train.async_rounds import NOT_FINITE, AsyncRounds
from trainer.programs.training import packs, program, result
from trainer.programs.training.program import NOTHING

LOST = (tf.errors.UnavailableError, tf.errors.AbortedError)


def train(task: Task, options: Options, progress: Progress | None) -> None:
    """Train to the end, from the newest checkpoint if there is one; then save and score the
    model."""
    checked = checkpoint_manager.prepare(options)
    checkpoint_manager.tell(options, task, "coordinator")
    mailbox.wait_for_servers()
    try:
        rounds = make_rounds(task, options, progress)
        with program.watched(rounds.stop, rounds.save_now, options.output / "save-now"):
            reached = rounds.run()
    except LOST as problem:
        raise TrainerError("the connection to a server was lost") from problem
    print(program.end_sentence(rounds.step, reached), flush=True)
    if reached == NOTHING and result.report_again(options.output, progress):
        return
    figures = rounds.metrics() | {"reached": reached, "mode": "coordinator"}
    checkpoint_manager.finish(options, checked, rounds.checkpoint, figures, progress)


def make_rounds(task: Task, options: Options, progress: Progress | None) -> AsyncRounds:
    """Create the strategy, and in its scope the detector and the variables of a step."""
    pipeline, config = options.pipeline, options.pipeline.train_config
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver()
    )
    workers = len(task.cluster["worker"])
    with strategy.scope():
        detector = ssd.build(pipeline.model, config.seed)
        optimizer = optimizers.keras_optimizer(config, config.num_steps)
        optimizer.build(detector.network.trainable_variables)
    saved = weights.find(options.output)
    if config.fine_tune_checkpoint and not saved:
        path = config.fine_tune_checkpoint
        fitting = weights.to_start_from(config, detector.network.weights)
        for variable, value in weights.values(path, fitting):
            variable.assign(value)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

    @tf.autograph.experimental.do_not_convert
    def for_worker(_: tf.distribute.InputContext) -> tf.data.Dataset:
        return input_pipeline.training(pipeline, worker_index(), workers)

    batches = coordinator.create_per_worker_dataset(
        lambda: strategy.distribute_datasets_from_function(for_worker)
    )
    return AsyncRounds(
        coordinator=coordinator,
        step=step_function(strategy, detector, optimizer, pipeline.model.l2_weight),
        batches=iter(batches),
        network=detector.network,
        optimizer=optimizer,
        options=options,
        progress=progress,
    )


def step_function(
    strategy: tf.distribute.Strategy,
    detector: Detector,
    optimizer: tf.keras.optimizers.Optimizer,
    l2_weight: float,
) -> tf.types.experimental.PolymorphicFunction:
    """Return a step: it takes a worker's iterator, trains, and returns the three losses."""
    network = detector.network

    def on_batch(batch: Batch) -> tf.Tensor:
        with packs.pulled(network) as weights, tf.GradientTape() as tape:
            tape.watch(weights)
            predictions = network(batch.images, training=True)
            parts = detector.loss.parts(loss.truth(batch.boxes, batch.classes), predictions)
            total = tf.reduce_mean(parts.total) + ssd.weight_decay(network, l2_weight)
            total = tf.debugging.check_numerics(total, NOT_FINITE)
        gradients = tape.gradient(total, weights)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables, strict=True))
        return tf.stack(
            [total, tf.reduce_mean(parts.localization), tf.reduce_mean(parts.classification)]
        )

    @tf.function(autograph=False)
    def step(batches: tf.data.Iterator) -> tf.Tensor:
        return strategy.run(on_batch, args=(next(batches),))

    return step
