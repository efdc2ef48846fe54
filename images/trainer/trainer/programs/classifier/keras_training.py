"""Training by tf_keras: as the chief of parameter servers, by all-reduce, or in one task.

Makes the strategy and the model, and runs the epochs by `fit` or in rounds.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping

import tensorflow as tf

from trainer.agent.errors import ContractError, TrainerError
from trainer.agent.injected import mailbox
from trainer.agent.injected.for_programs.cluster_kit_input import worker_index
from trainer.agent.progress_file import Progress
from trainer.agent.task import Task
from trainer.programs.classifier import (
    checkpoints,
    classifier_model,
    clones,
    image_files,
    input_pipeline,
    mode,
)
from trainer.programs.classifier.async_calls import AsyncCalls
from trainer.programs.classifier.callbacks import EpochReport, callbacks
from trainer.programs.classifier.evaluate import finish
from trainer.programs.classifier.graph_mode import train_graph
from trainer.programs.classifier.interruption import Coordinated, Interruption, Resumable
from trainer.programs.classifier.options import Options
from trainer.programs.classifier.other_trainers import OtherTrainers, all_here_within
from trainer.programs.classifier.schedule import Schedule, schedule_of
from trainer.programs.classifier.sync_rounds import SyncRounds, fit_in_rounds
from trainer.programs.training import program, result
from trainer.programs.training.board import write_hyperparameters
from trainer.programs.training.checkpoint_files import trace_once


def fit(
    network: tf.keras.Model,
    schedule: Schedule,
    options: Options,
    split: image_files.Split,
    classes: int,
    progress: Progress | None,
    task: Task,
) -> EpochReport:
    """Run the remaining epochs and return their report."""
    report, accompanying = callbacks(options, schedule, progress, leads=task.is_leader)
    trace_once(network._checkpoint)  # ModelCheckpoint's
    interruption = Interruption(task, options, schedule)
    accompanying.append(interruption)
    workers = len(task.cluster.get("worker", ()))

    @tf.autograph.experimental.do_not_convert
    def for_worker() -> tf.data.Dataset:
        return input_pipeline.training_set(split, classes, options, workers, worker_index())

    @tf.autograph.experimental.do_not_convert
    def for_peer(context: tf.distribute.InputContext) -> tf.data.Dataset:
        devices = context.num_replicas_in_sync // context.num_input_pipelines
        share = dataclasses.replace(options, batch_size=options.batch_size // devices)
        pipelines, index = context.num_input_pipelines, context.input_pipeline_id
        return input_pipeline.training_set(split, classes, share, pipelines, index)

    creator = tf.keras.utils.experimental.DatasetCreator
    inputs = {
        mode.ALL_REDUCE: lambda: creator(for_peer),
        mode.MIRRORED: lambda: input_pipeline.training_set(split, classes, options, 1, 0),
    }
    first, steps = schedule.first_epoch, schedule.steps_per_epoch
    with program.watched(interruption.terminated):
        if schedule.strategy == mode.PARAMETER_SERVER:
            if options.update == mode.SYNC:
                rounds = SyncRounds(network, for_worker, workers)
            else:
                rounds = AsyncCalls(network, for_worker, workers, options.steps_per_call)
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


MIN_SHARD_BYTES = 256 << 10


def make(how: str, task: Task, options: Options) -> tf.distribute.Strategy | None:
    """The strategy that `how` (see mode) names; None on a single device."""
    if how == mode.PARAMETER_SERVER:
        return parameter_server(task)
    if how == mode.ALL_REDUCE:
        return all_reduce(task, options)
    return mirrored(task, options)


def clone_devices(how: str, task: Task, options: Options) -> tuple[str, ...]:
    """The devices of a task's clones; () for a model without clones."""
    if how == mode.MIRRORED:
        return ()
    job, index = ("worker", 0) if how == mode.PARAMETER_SERVER else (task.job, task.index)
    prefix = f"/job:{job}/replica:0/task:{index}/"
    gpus, cpus = (
        len([device for device in tf.config.list_logical_devices(kind) if prefix in device.name])
        for kind in ("GPU", "CPU")
    )
    if how == mode.ALL_REDUCE and gpus:
        return ()  # MirroredStrategy has a replica on each device.
    return clones.devices_in_a_task(options, f"{job}-{index}", gpus, cpus)


def parameter_server(task: Task) -> tf.distribute.Strategy:
    """Variables on the ps, large ones split over them; workers compute, the chief coordinates."""
    return tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver(),
        variable_partitioner=tf.distribute.experimental.partitioners.MinSizePartitioner(
            MIN_SHARD_BYTES, max_shards=len(task.cluster["ps"])
        ),
    )


def all_reduce(task: Task, options: Options) -> tf.distribute.Strategy:
    """Returns MultiWorkerMirroredStrategy: all trainers hold all variables, and average their
    gradients in each step.

    Blocks until all trainers have started. A worker uses all its GPUs, but only one simulated
    device.
    """
    clones.hide_gpus(options)
    gpus = tf.config.get_visible_devices("GPU")
    if options.clones and gpus:
        clones.enough(options, task.name, len(gpus))
        tf.config.set_visible_devices(gpus[: options.clones], "GPU")
    if task.simulate_gpus > 1 and not gpus and not options.clones:
        print(
            f"all-reduce between tasks uses real GPUs or one CPU device a task: of"
            f" {task.simulate_gpus} simulated devices it takes the first",
            flush=True,
        )
    distribute = tf.distribute.experimental
    ways = {"ring": distribute.CommunicationImplementation.RING,
            "nccl": distribute.CommunicationImplementation.NCCL}  # fmt: skip
    with all_here_within(task):
        strategy = tf.distribute.MultiWorkerMirroredStrategy(
            communication_options=distribute.CommunicationOptions(
                implementation=ways[options.communication], timeout_seconds=options.peer_timeout
            )
        )
    devices = strategy.num_replicas_in_sync // mode.trainers(task.cluster)
    if options.batch_size % devices:
        raise ContractError(
            f"--batch-size {options.batch_size} is shared out between the {devices} devices of a"
            f" worker: must be a multiple of {devices}"
        )
    print(
        f"all-reduce between {mode.trainers(task.cluster)} tasks, {devices} device"
        f"{'' if devices == 1 else 's'} each; one step is"
        f" {options.batch_size * mode.trainers(task.cluster)} images",
        flush=True,
    )
    return strategy


def mirrored(task: Task, options: Options) -> tf.distribute.Strategy | None:
    """Return a strategy over this task's devices: a device per clone; without clones, all.

    The devices are GPUs, or CPU devices, which are created if more are needed.
    """
    clones.hide_gpus(options)
    gpus = tf.config.get_visible_devices("GPU")
    count = options.clones
    if count and gpus:
        clones.enough(options, task.name, len(gpus))
    elif count and count > max(task.simulate_gpus, 1):
        cpu = tf.config.list_physical_devices("CPU")[0]
        several = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
        tf.config.set_logical_device_configuration(cpu, several)
    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    devices = [device.name for device in tf.config.list_logical_devices(kind)][:count]
    print(f"training on {', '.join(name.partition(':')[2] for name in devices)}", flush=True)
    return tf.distribute.MirroredStrategy(devices) if len(devices) > 1 else None


def train(task: Task, options: Options, progress: Progress | None) -> None:
    """Train this task's part, in the way that the options and the cluster decide."""
    how = mode.decide(options.strategy, task.cluster, task.servers)
    if how == mode.GRAPH:
        train_graph(task, options, progress)
    else:
        train_eagerly(how, task, options, progress)


def train_eagerly(how: str, task: Task, options: Options, progress: Progress | None) -> None:
    """Train to the last epoch (from where an earlier run stopped), score on Test, and save.

    Only the leader scores, saves, and writes the result.
    """
    classes, train_split, test_split = image_files.to_train_on(options)
    first_epoch = epoch_to_resume(options)
    schedule = schedule_of(how, task, options, len(train_split.paths), first_epoch)
    if first_epoch >= options.epochs and (
        not task.is_leader or result.report_again(options.output, progress)
    ):
        print(f"nothing to do: {first_epoch} of {options.epochs} epochs are trained", flush=True)
        return
    image_files.tell(options, train_split, test_split)
    epochs = f"{options.epochs} epoch{'s' if options.epochs != 1 else ''}"
    print(
        f"{len(train_split.paths)} training images, {len(classes)} classes; {epochs}"
        f" of {schedule.steps_per_epoch} steps, {schedule.images_per_step} images each",
        flush=True,
    )
    mailbox.wait_for_servers()
    if task.is_leader:
        hyperparameters = {**options.hyperparameters, "strategy": how}
        write_hyperparameters(options.output, task.cluster, hyperparameters)
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
    kind = Coordinated if schedule.strategy == mode.PARAMETER_SERVER else Resumable
    with servers_may_be_lost():
        strategy = make(schedule.strategy, task, options)
        with strategy.scope() if strategy else contextlib.nullcontext():
            network = classifier_model.build(options, classes, kind)
            network.clone_devices = clone_devices(schedule.strategy, task, options)
            network.optimizer.build(network.trainable_variables)
            if schedule.first_epoch:
                network.load_weights(checkpoints.find(options.output)[-1].path)
    if network.clone_devices:
        print(clones.description(network.clone_devices), flush=True)
    if schedule.strategy == mode.PARAMETER_SERVER:
        print(classifier_model.placement(network), flush=True)
    return network


@contextlib.contextmanager
def servers_may_be_lost() -> Iterator[None]:
    """Shorten TensorFlow's long error about a lost server, from which the supervisor recovers."""
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
