"""Checkpoints and what is in them, by the names of the variables.

`checkpoints/model.ckpt-<step>` is graph mode's, `checkpoints/ckpt-<step>` the coordinator's; each
is complete once its `.index` is there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from trainer.errors import ContractError
from trainer.programs.detection.config.train_fields import TrainConfig
from trainer.programs.detection.model.ssd import is_of_backbone
from trainer.training.checkpoints.directory import checkpoint_directory
from trainer.training.checkpoints.snapshot import DAMAGED, name_of

INDEX = re.compile(r"(?:(?:model|manual)\.)?ckpt-(\d+)\.index")
OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"


@dataclass(frozen=True, order=True)
class Checkpoint:
    """The variables at global step `step`; `written` (ns) tells a rewritten one from the first."""

    step: int
    path: str
    written: int

    @property
    def name(self) -> str:
        return Path(self.path).name


def find(output: Path) -> list[Checkpoint]:
    """All complete checkpoints, by step."""
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
    """Variable name to the key that its value has in the checkpoint, of either kind."""
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


def load(network: tf.keras.Model, path: str) -> None:
    """Every variable of `network` from the checkpoint; or one of DAMAGED."""
    keys, reader = keys_by_name(path), tf.train.load_checkpoint(path)
    for variable in network.weights:
        variable.assign(reader.get_tensor(keys[name_of(variable)]))


def to_start_from(train: TrainConfig, variables: Sequence[tf.Variable]) -> dict[str, tf.Variable]:
    """Key in the fine-tune checkpoint to variable, of all that fit by name and shape.

    Raises:
        ContractError: there is no such checkpoint, or nothing in it fits.
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
    fitting = {
        keys[name_of(v)]: v
        for v in wanted
        if name_of(v) in keys and shapes[keys[name_of(v)]] == v.shape.as_list()
    }
    if not fitting:
        raise ContractError(
            f"train_config.fine_tune_checkpoint = {path!r}: none of its {len(shapes)} variables"
            f" fits one of the model's {len(wanted)} by name and shape; the model begins with"
            f" {name_of(wanted[0])} {tuple(wanted[0].shape)}"
        )
    print(f"{len(fitting)} of {len(variables)} variables start from {path}", flush=True)
    return fitting


def values(path: str, variables: dict[str, tf.Variable]) -> list[tuple[tf.Variable, np.ndarray]]:
    """Each variable with its value in the checkpoint; `variables` as of to_start_from."""
    reader = tf.train.load_checkpoint(path)
    return [(variable, reader.get_tensor(key)) for key, variable in variables.items()]
