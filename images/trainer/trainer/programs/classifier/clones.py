"""Several copies of the model in one task, outside of graph mode: `--num-clones`.

Clones share the variables; each gets an equal part of the task's batch, and their gradients are
averaged. If there is only one task, each clone is a replica of MirroredStrategy. Under a
coordinator and in an all-reduce, which support one CPU device per task, the clones are parts of one
step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import tensorflow as tf

from trainer.agent.errors import ContractError
from trainer.programs.classifier.options import Options

keras = tf.keras


class Cloned(keras.Model):
    """A model that divides each step between its clones, if it has clones."""

    clone_devices: Sequence[str] = ()
    """One device per clone; empty for a model without clones."""

    @tf.autograph.experimental.do_not_convert
    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        if not self.clone_devices:
            return super().train_step(data)
        images, labels = data
        _, predicted, gradients = self.gradients(images, labels)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return self.compute_metrics(images, labels, predicted, None)

    def pulled(self) -> contextlib.AbstractContextManager[list[tf.Variable | tf.Tensor]]:
        """Context manager: yields the tensors or variables by which gradients are computed."""
        return contextlib.nullcontext(self.trainable_variables)

    def gradients(
        self, images: tf.Tensor, labels: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """Returns (mean loss, predictions [n, classes], gradients of the loss by trainable
        variable)."""
        devices = self.clone_devices or (None,)
        parts = zip(tf.split(images, len(devices)), tf.split(labels, len(devices)))
        losses, predictions, gradients = [], [], []
        with self.pulled() as weights:
            for device, (part, wanted) in zip(devices, parts):
                with tf.device(device) if device else contextlib.nullcontext():
                    with tf.GradientTape() as tape:
                        tape.watch(weights)
                        predicted = self(part, training=True)
                        loss = self.compute_loss(part, wanted, predicted)
                    gradients.append(tape.gradient(loss, weights))
                losses.append(loss)
                predictions.append(predicted)
        if len(devices) == 1:
            return losses[0], predictions[0], gradients[0]
        count = len(devices)
        means = [tf.add_n(of_clones) / count for of_clones in zip(*gradients)]
        return tf.add_n(losses) / count, tf.concat(predictions, 0), means


def hide_gpus(options: Options) -> None:
    """Hide GPUs if --clone-on-cpu is given. Call this before TensorFlow uses a device."""
    if options.graph.clone_on_cpu:
        tf.config.set_visible_devices([], "GPU")


def devices_in_a_task(options: Options, name: str, gpus: int, cpus: int) -> tuple[str, ...]:
    """Returns the devices of a task's clones that are parts of one step; () without clones.

    Args:
        name: the task's name, for messages.
        gpus: the number of GPUs that the task sees; 0 if none may be used.
        cpus: the number of its logical CPU devices; if they are fewer than the clones, clones share
            them.
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
    """Raise ContractError if a task has fewer GPUs than clones."""
    if (options.clones or 1) > gpus:
        raise ContractError(
            f"--num-clones {options.clones}, but {name} sees {gpus} GPU{'s' * (gpus != 1)}: each"
            " clone needs one; give it more (`gpus_per_worker`), or use --clone-on-cpu"
        )


def description(devices: Sequence[str]) -> str:
    """Returns a text for the log with the number of clones and their devices."""
    names = ", ".join(device.rpartition("device:")[2] for device in devices)
    return f"{len(devices)} clone{'s' * (len(devices) != 1)} in each task, on {names}"
