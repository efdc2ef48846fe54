"""Checkpoints and what is in them, by the names of the variables.

`checkpoints/model.ckpt-<step>` is graph mode's, `checkpoints/ckpt-<step>` the coordinator's; each
is complete once its `.index` is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from trainer.agent.errors import ContractError
from trainer.programs.detection.config.train_fields import TrainConfig
from trainer.programs.detection.model import zoo_names
from trainer.programs.detection.model.ssd import is_of_backbone
from trainer.programs.detection.model.zoo_names import AVERAGE
from trainer.programs.training.checkpoints.directory import checkpoint_directory
from trainer.programs.training.checkpoints.snapshot import DAMAGED, name_of

INDEX = re.compile(r"(?:(?:model|manual)\.)?ckpt-(\d+)\.index")
SHOWN = 6
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


def load(network: tf.keras.Model, path: str, averaged: bool = False) -> None:
    """Every variable of `network` from the checkpoint; or one of DAMAGED.

    Args:
        averaged: take its moving average instead, of those that have one.
    """
    keys, reader = keys_by_name(path), tf.train.load_checkpoint(path)
    for variable in network.weights:
        name = name_of(variable)
        average = keys.get(name + AVERAGE) if averaged else None
        variable.assign(reader.get_tensor(average or keys[name]))


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
    known = zoo_names.found_as(map(name_of, wanted), keys)
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
            f" {zoo_names.slim_name(name_of(wanted[0]))}"
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
    """Each variable with its value in the checkpoint; `variables` as of to_start_from."""
    reader = tf.train.load_checkpoint(path)
    return [(variable, reader.get_tensor(key)) for key, variable in variables.items()]
