"""Several copies of the model in one task, outside of graph mode: `--num-clones`.

Clones share the variables and, evenly, the task's batch; the gradient is the mean of theirs. Alone
in a task each is a replica of MirroredStrategy. Under a coordinator and by all-reduce, which know
one CPU device a task, they are parts of one step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import tensorflow as tf

from trainer.agent.errors import ContractError
from trainer.programs.classifier.options import Options

keras = tf.keras


class Cloned(keras.Model):
    """A model whose step is that of its clones, if it has any."""

    clone_devices: Sequence[str] = ()
    """One for each clone; none for a plain model."""

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        if not self.clone_devices:
            return super().train_step(data)
        images, labels = data
        _, predicted, gradients = self.gradients(images, labels)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return self.compute_metrics(images, labels, predicted, None)

    def gradients(
        self, images: tf.Tensor, labels: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """(mean loss, predictions [n, classes], gradients of the loss by trainable variable)."""
        devices = self.clone_devices or (None,)
        parts = zip(tf.split(images, len(devices)), tf.split(labels, len(devices)))
        losses, predictions, gradients = [], [], []
        for device, (part, wanted) in zip(devices, parts):
            with tf.device(device) if device else contextlib.nullcontext():
                with tf.GradientTape() as tape:
                    predicted = self(part, training=True)
                    loss = self.compute_loss(part, wanted, predicted)
                gradients.append(tape.gradient(loss, self.trainable_variables))
            losses.append(loss)
            predictions.append(predicted)
        if len(devices) == 1:
            return losses[0], predictions[0], gradients[0]
        count = len(devices)
        means = [tf.add_n(of_clones) / count for of_clones in zip(*gradients)]
        return tf.add_n(losses) / count, tf.concat(predictions, 0), means


def hide_gpus(options: Options) -> None:
    """Hide GPUs if --clone-on-cpu is given; call it before TensorFlow uses a device."""
    if options.graph.clone_on_cpu:
        tf.config.set_visible_devices([], "GPU")


def devices_in_a_task(options: Options, name: str, gpus: int, cpus: int) -> tuple[str, ...]:
    """The devices of the clones of a task that trains in one step; () if it is a plain model.

    Args:
        name: of a task, for messages.
        gpus: how many it sees; 0 if there shall be none.
        cpus: its logical CPU devices; clones share them if they are fewer.
    Raises:
        ContractError: the task has GPUs, but too few.
    """
    count = options.clones or 1
    on_cpu = options.graph.clone_on_cpu
    if count == 1 and not on_cpu:
        return ()
    if gpus and not on_cpu:
        enough(options, name, gpus)
        return tuple(f"/device:GPU:{clone}" for clone in range(count))
    return tuple(f"/device:CPU:{clone % cpus}" for clone in range(count))


def enough(options: Options, name: str, gpus: int) -> None:
    """ContractError if a task has fewer GPUs than clones."""
    if (options.clones or 1) > gpus:
        raise ContractError(
            f"--num-clones {options.clones}, but {name} sees {gpus} GPU{'s' * (gpus != 1)}: each"
            " clone needs one; give it more (`gpus_per_worker`), or take --clone-on-cpu"
        )


def description(devices: Sequence[str]) -> str:
    """Returns the clones as a part of a line of the log."""
    names = ", ".join(device.rpartition("device:")[2] for device in devices)
    return f"{len(devices)} clone{'s' * (len(devices) != 1)} in each task, on {names}"
