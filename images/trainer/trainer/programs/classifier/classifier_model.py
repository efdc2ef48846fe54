"""The classifier's models in tf_keras: builds them, loads checkpoints, and writes the SavedModel.

The models are tf_keras's, since ParameterServerStrategy does not support Keras 3's `fit`. The
directory of the SavedModel also contains the model for Keras 3 and for tf_keras.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import tensorflow as tf

from trainer.agent.errors import TrainerError
from trainer.programs.classifier.options import Options
from trainer.programs.training.checkpoint_files import name_of
from trainer.programs.training.export import SavedModel
from trainer.programs.training.optimizers import Adam

keras = tf.keras


def build(options: Options, classes: int, kind: type[keras.Model] = keras.Model) -> keras.Model:
    """Returns a compiled model from images [n, size, size, 3] in 0…255 to probabilities [n,
    classes].

    Args:
        kind: the class of the model; a subclass may override train_step.
    """
    model = new_model(options, classes, kind)
    model.compile(
        optimizer=Adam(options.learning_rate(0)),
        loss=keras.losses.CategoricalCrossentropy(),
        metrics=[keras.metrics.CategoricalAccuracy(name="accuracy")],
        steps_per_execution=options.steps_per_call or 1,
    )
    return model


def new_model(
    options: Options,
    classes: int,
    kind: type[keras.Model] = keras.Model,
    keras: ModuleType = keras,
) -> keras.Model:
    """Like `build`, but not compiled: graph mode has its own optimizer.

    Args:
        keras: the library whose layers are used: tf_keras, or Keras 3.
    """
    tf.random.set_seed(options.seed)
    image = keras.Input((options.image_size, options.image_size, 3), name="image")
    scaled = keras.layers.Rescaling(1 / 255, name="scaled")(image)
    body = mobilenet_v2 if options.model == "mobilenet_v2" else cnn
    features = body(scaled, keras)
    dropped = keras.layers.Dropout(options.dropout)(features)
    output = keras.layers.Dense(classes, activation="softmax", name="probabilities")(dropped)
    model = kind(image, output, name=options.model)
    tf.random.set_seed(None)
    if options.bn_momentum is not None:
        set_momentum(model, options.bn_momentum, keras)
    return model


def mobilenet_v2(scaled: tf.Tensor, keras: ModuleType = keras) -> tf.Tensor:
    """Returns MobileNetV2 without weights, pooled, and a layer of 512 features: [n, 512]."""
    body = keras.applications.MobileNetV2(
        input_tensor=scaled, include_top=False, weights=None, pooling="avg"
    )
    return keras.layers.Dense(512, activation="relu", name="features")(body.output)


def cnn(scaled: tf.Tensor, keras: ModuleType = keras) -> tf.Tensor:
    """Returns convolutions and pooling down to 4 x 4 pixels or fewer, and 256 features: [n, 256].

    If image sides are powers of two, the kernel of `features` has 1 MiB, so that it is split over
    several parameter servers.
    """
    layer, filters = scaled, 32
    while True:
        layer = keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(layer)
        filters = 64
        if layer.shape[1] <= 4:
            break
        layer = keras.layers.MaxPool2D()(layer)
    return keras.layers.Dense(256, activation="relu", name="features")(
        keras.layers.Flatten()(layer)
    )


def set_momentum(model: keras.Model, momentum: float, keras: ModuleType = keras) -> None:
    """Set the momentum of BatchNorm's averages: with 0.999 they follow too slowly for short
    runs."""
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = momentum


def placement(model: keras.Model) -> str:
    """Returns one line about the placement of the weights: bytes per task, and the split
    weights."""
    held: dict[str, int] = {}
    parts: dict[str, list[str]] = {}
    for weight in model.weights:
        for part in getattr(weight, "variables", [weight]):
            device = tf.DeviceSpec.from_string(part.device)
            task = f"{device.job}-{device.task}"
            size = part.shape.num_elements() * part.dtype.size
            held[task] = held.get(task, 0) + size
            name, cut, _ = part.name.partition("/part_")
            if cut:
                parts.setdefault(name, []).append(f"{task} {part.shape}")
    where = ", ".join(f"{task} {size / 1024:,.0f} KiB" for task, size in sorted(held.items()))
    split = "".join(f"; {name} split: {', '.join(p)}" for name, p in parts.items() if len(p) > 1)
    return f"variables: {where}{split}"


KERAS = "model.keras"
TF_KERAS = "model-tf_keras.keras"
CLASSES = "classes.txt"


def exported(
    network: tf.keras.Model, target: Path, options: Options, classes: Sequence[str]
) -> SavedModel:
    """Returns the SavedModel that replaces the one at `target` when it is written.

    It takes images [n, size, size, 3] in 0…255 and returns `probabilities` [n, classes]. Its
    directory also has KERAS (the model for Keras 3), TF_KERAS (the model for tf_keras), and
    CLASSES, a text file with one class name per line, in order. The two libraries cannot read each
    other's files.
    """
    signature = tf.TensorSpec(network.input_shape, tf.float32, "image")
    twins: dict[str, tf.keras.Model] = {}

    def serve(image: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"probabilities": network(image, training=False)}

    def also(directory: Path) -> None:
        import keras

        for name, library in ((KERAS, keras), (TF_KERAS, tf.keras)):
            if name not in twins:
                twins[name] = new_model(options, len(classes), library.Model, library)
            copy_weights(network, twins[name])
            twins[name].save(str(directory / name))
        (directory / CLASSES).write_text("".join(f"{name}\n" for name in classes))

    return SavedModel(target, network.weights, serve, signature, also)


def copy_weights(network: tf.keras.Model, twin: tf.keras.Model) -> None:
    """Set the weights of `twin`, which has the same layers, made by either library."""
    theirs = [layer for layer in network.layers if layer.weights]
    ours = [layer for layer in twin.layers if layer.weights]
    for layer, original in zip(ours, theirs):
        layer.set_weights(original.get_weights())


GLOBAL_STEP = "global_step"


def load(path: str | Path, model: tf.keras.Model) -> int:
    """Read the checkpoint with prefix `path` into `model`; returns the number of steps trained so
    far.

    Graph mode saves variables by name; `fit` saves the objects of a compiled model. Both are read.
    """
    reader = tf.train.load_checkpoint(str(path))
    if not reader.has_tensor(GLOBAL_STEP):
        model.load_weights(str(path)).expect_partial()
        return int(model.optimizer.iterations)
    names = [name_of(weight) for weight in model.weights]
    missing = [name for name in names if not reader.has_tensor(name)]
    if missing:
        raise TrainerError(
            f"{path} belongs to another model: it has no {missing[0]}; give --model and the sizes"
            " that it was trained with"
        )
    model.set_weights([reader.get_tensor(name) for name in names])
    return int(reader.get_tensor(GLOBAL_STEP))
