"""Finds checkpoints and reads their variables by name.

Graph mode writes `checkpoints/model.ckpt-<step>`, a coordinator `checkpoints/ckpt-<step>`. A
checkpoint is complete when its `.index` exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from trainer.agent.errors import ContractError
from trainer.programs.detection.config.pipeline import TrainConfig
from trainer.programs.detection.model.ssd import is_of_backbone
from trainer.programs.training.checkpoint_files import DAMAGED, name_of
from trainer.programs.training.program import checkpoint_directory

NORMS = "gamma|beta|moving_mean|moving_variance"
AVERAGE = "/ExponentialMovingAverage"
PARTS = {"kernel": "weights", "depthwise_kernel": "depthwise_weights"}
OF_OPTIMIZERS = ("optimizer/", "Adam/", "SGD/", "RMSprop/")


def slim_name(name: str) -> str:
    """Return slim's name of the variable `name` of tf_keras' MobileNet; "" if it has none."""
    layer, _, part = name.rpartition("/")
    scope = slim_scope(re.sub(r"(_bn|_BN)$", "", re.sub(r"^bn_", "", layer)))
    if not scope:
        return ""
    if re.fullmatch(NORMS, part):
        return f"{scope}/BatchNorm/{part}"
    return f"{scope}/{PARTS.get(part, part)}"


def slim_scope(layer: str) -> str:
    """The scope that slim gives a layer of the backbone; "" for a layer of another kind."""
    if layer == "conv1":
        return "MobilenetV1/Conv2d_0"
    if match := re.fullmatch(r"conv_(dw|pw)_(\d+)", layer):
        kind = {"dw": "depthwise", "pw": "pointwise"}[match[1]]
        return f"MobilenetV1/Conv2d_{match[2]}_{kind}"
    if layer in ("Conv1", "Conv_1"):
        return f"MobilenetV2/{'Conv' if layer == 'Conv1' else layer}"
    if match := re.fullmatch(r"expanded_conv_(depthwise|project)", layer):
        return f"MobilenetV2/expanded_conv/{match[1]}"
    if match := re.fullmatch(r"block_(\d+)_(expand|depthwise|project)", layer):
        return f"MobilenetV2/expanded_conv_{match[1]}/{match[2]}"
    return ""


def found_as(names: Iterable[str], there: Iterable[str]) -> dict[str, str]:
    """Return a map from each of `names` found in the checkpoint to its name there.

    The same name is preferred to slim's name, and a whole name to a name with a prefix, such as
    the name of a model.
    """
    by_end = endings(there)
    names_by_variable = {}
    for name in names:
        for wanted in filter(None, (name, slim_name(name))):
            if wanted in by_end:
                names_by_variable[name] = by_end[wanted]
                break
    return names_by_variable


def endings(there: Iterable[str]) -> Mapping[str, str]:
    """Return a map from each ending (whole components) to the shortest name that ends with it."""
    by_end: dict[str, str] = {}
    for full in sorted(there, key=lambda name: (len(name), name), reverse=True):
        if full.startswith(OF_OPTIMIZERS) or full.endswith(AVERAGE):
            continue
        parts = full.split("/")
        for start in range(len(parts) - 1):
            by_end["/".join(parts[start:])] = full
        by_end[full] = full
    return by_end


INDEX = re.compile(r"(?:(?:model|manual)\.)?ckpt-(\d+)\.index")
SHOWN = 6
OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"


@dataclass(frozen=True, order=True)
class Checkpoint:
    """The variables at global step `step`; `written` (ns) distinguishes a rewritten file from the
    first."""

    step: int
    path: str
    written: int

    @property
    def name(self) -> str:
        return Path(self.path).name


def find(output: Path) -> list[Checkpoint]:
    """Returns all complete checkpoints, by step."""
    complete = []
    for file in checkpoint_directory(output).glob("*ckpt-*.index"):
        match = INDEX.fullmatch(file.name)
        if match:
            try:
                written = file.stat().st_mtime_ns
            except FileNotFoundError:
                continue
            complete.append(Checkpoint(int(match[1]), str(file.with_suffix("")), written))
    return sorted(complete)


def keys_by_name(path: str) -> dict[str, str]:
    """Returns each variable's name and its key in the checkpoint, for both kinds of checkpoint."""
    reader = tf.train.load_checkpoint(path)
    if not reader.has_tensor(OBJECTS):
        return {name: name for name in reader.get_variable_to_shape_map()}
    objects = trackable_object_graph_pb2.TrackableObjectGraph()
    objects.ParseFromString(reader.get_tensor(OBJECTS))
    return {
        attribute.full_name: attribute.checkpoint_key
        for node in objects.nodes
        for attribute in node.attributes
    }


def load(network: tf.keras.Model, path: str, averaged: bool = False) -> None:
    """Read every variable of `network` from the checkpoint; raises one of DAMAGED on failure.

    Args:
        averaged: whether to read the moving average of each variable that has one.
    """
    keys, reader = keys_by_name(path), tf.train.load_checkpoint(path)
    for variable in network.weights:
        name = name_of(variable)
        average = keys.get(name + AVERAGE) if averaged else None
        variable.assign(reader.get_tensor(average or keys[name]))


def to_start_from(train: TrainConfig, variables: Sequence[tf.Variable]) -> dict[str, tf.Variable]:
    """Return key in the fine-tune checkpoint to variable, for all that match in name and shape.

    Raises:
        ContractError: the checkpoint does not exist, or no variable matches.
    """
    path = str(train.fine_tune_checkpoint)
    every = train.fine_tune_checkpoint_type == "detection"
    wanted = [v for v in variables if every or is_of_backbone(name_of(v))]
    try:
        keys = keys_by_name(path)
        shapes = tf.train.load_checkpoint(path).get_variable_to_shape_map()
    except (*DAMAGED, ValueError) as problem:
        raise ContractError(
            f"train_config.fine_tune_checkpoint = {path!r}: no checkpoint can be read there"
            f" ({str(problem).splitlines()[0][:200]}); write its prefix, the path of its .index"
            " file without `.index`"
        ) from problem
    known = found_as(map(name_of, wanted), keys)
    key_of = {name: keys[there] for name, there in known.items()}
    fitting = {
        key_of[name_of(v)]: v
        for v in wanted
        if name_of(v) in key_of and shapes[key_of[name_of(v)]] == v.shape.as_list()
    }
    if not fitting:
        raise ContractError(
            f"train_config.fine_tune_checkpoint = {path!r}: none of its {len(shapes)} variables"
            f" fits one of the model's {len(wanted)} by name and shape; the model begins with"
            f" {name_of(wanted[0])} {tuple(wanted[0].shape)}, which slim calls"
            f" {slim_name(name_of(wanted[0]))}"
        )
    say_what_fits(path, fitting, variables, known)
    return fitting


def say_what_fits(
    path: str,
    fitting: Mapping[str, tf.Variable],
    variables: Sequence[tf.Variable],
    known: Mapping[str, str],
) -> None:
    """Print how many variables start from the checkpoint, and which do not."""
    started = {name_of(v) for v in fitting.values()}
    renamed = sum(known[name] != name for name in started)
    others = [name_of(v) for v in variables if name_of(v) not in started]
    print(
        f"{len(fitting)} of {len(variables)} variables start from {path}"
        + (f", {renamed} of them under other names" if renamed else ""),
        flush=True,
    )
    if others:
        shown = ", ".join(others[:SHOWN]) + (", …" if len(others) > SHOWN else "")
        print(f"{len(others)} start by chance, not there or of another shape: {shown}", flush=True)


def values(path: str, variables: dict[str, tf.Variable]) -> list[tuple[tf.Variable, np.ndarray]]:
    """Return each variable with its value in the checkpoint; `variables`: from to_start_from."""
    reader = tf.train.load_checkpoint(path)
    return [(variable, reader.get_tensor(key)) for key, variable in variables.items()]
