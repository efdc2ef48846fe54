"""The keys of `[role.…]` and `[task.…]`, and how a task's values replace its role's. Pure.

A new key is a field of `Limits`. A test of plan/plan.py then fails until it reaches the task.
"""

from __future__ import annotations

import re

from pydantic import Field

from cluster_kit.manifest.field_types import GpuId, Strict, Text
from cluster_kit.manifest.published import PortPair, SoftHard
from cluster_kit.manifest.units import BitsPerSecond, Bytes

RESERVED = re.compile(r"TF_CONFIG|(CUDA|NVIDIA)_VISIBLE_DEVICES|CLUSTER_KIT_\w+")
"""Environment variables that the kit itself sets for a task."""


class Limits(Strict):
    """Limits, environment and GPUs of one role or one task."""

    cpus: float | None = Field(
        None, ge=0.01, allow_inf_nan=False, description="CPU limit in cores, e.g. `0.5`"
    )
    memory: Bytes | None = Field(None, description='Memory limit, e.g. `"2g"`')
    bandwidth: BitsPerSecond | None = Field(
        None, description='Limit of the network speed, each way, e.g. `"100mbit"`'
    )
    environment: dict[str, Text] = Field(
        default_factory=dict, description="Environment variables, in addition to the kit's own"
    )
    env_file: Text | None = Field(
        None,
        description="Path of a file of variables (`NAME=value`, as Compose reads it): its values "
        "are in no other file",
    )
    secrets: list[Text] | None = Field(
        None,
        description="Names of variables that are taken from your own environment at the start: "
        'their values are in no file, e.g. `["WANDB_API_KEY"]`',
    )
    shm_size: Bytes | None = Field(
        None,
        description='Size of `/dev/shm`, e.g. `"1g"`; if not given, 64 MiB, and 1 GiB with GPUs',
    )
    ulimits: dict[str, SoftHard] = Field(
        default_factory=dict,
        description="Limits of the kernel for each process, soft and hard, e.g. `nofile = 65536`, "
        '`core = "0:-1"`; -1: none',
    )
    ports: list[PortPair] | None = Field(
        None,
        description='Ports that are published on 127.0.0.1 of this host, e.g. `6006`, `"8080:80"`: '
        "the host's and the container's",
    )
    nodes: Text | None = Field(
        None,
        description='Nodes of a swarm or of Kubernetes that may run it, e.g. `"disk==ssd"`: a '
        "label of nodes, or `node.hostname`, …; several are separated by commas",
    )
    gpus: list[GpuId] | None = Field(
        None,
        description="GPUs by index, UUID, MIG slice or CDI name: of the chief or the evaluator, or "
        "of one worker instead of its share of `gpus`",
    )


class TaskLimits(Limits):
    """The same for one task, which may also pin its IP address."""

    ip: str | None = Field(None, description="The task's IP address; needs a fixed `subnet`")


def overlay(below: Limits, above: Limits) -> Limits:
    """Each field of `above` if it is given, else of `below`; tables are joined, `above` wins."""
    return below.model_copy(
        update={
            key: _joined(getattr(below, key), getattr(above, key))
            for key in type(below).model_fields
        }
    )


def _joined(below: object, above: object) -> object:
    if isinstance(below, dict) and isinstance(above, dict):
        return below | above
    return below if above is None else above
