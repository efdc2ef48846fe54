"""Checks, limits and simulates TensorFlow's devices before a Python program uses any.

Later settings of the program itself take precedence.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from types import ModuleType
from typing import Any

EXIT_GPU_MISSING = 3


def prepare(tf: ModuleType, promises: ModuleType, mailbox: ModuleType, hidden: bool) -> None:
    """Called once, right after the import; `hidden`: the program chose its GPUs by itself."""
    gpus = tf.config.list_physical_devices("GPU")
    promised = promises.reader(os.environ)(os.environ.get("CLUSTER_KIT_GPUS", ""))
    if promised and not hidden:
        check(promised, gpus_seen(tf, gpus, promises), promises, mailbox)
    limit = number("CLUSTER_KIT_GPU_MEMORY_MB")
    for gpu in gpus:
        if limit:
            logical = tf.config.LogicalDeviceConfiguration(memory_limit=limit)
            tf.config.set_logical_device_configuration(gpu, [logical])
        else:
            tf.config.experimental.set_memory_growth(gpu, True)
    simulated = number("CLUSTER_KIT_SIMULATE_GPUS")
    if simulated and not gpus:
        cpu = tf.config.list_physical_devices("CPU")[0]
        several = [tf.config.LogicalDeviceConfiguration() for _ in range(simulated)]
        tf.config.set_logical_device_configuration(cpu, several)
    accept_growth_under_a_limit()
    fill_in_configurations()


def check(
    promised: Sequence[Any], sees: Sequence[Any], promises: ModuleType, mailbox: ModuleType
) -> None:
    """Record the GPUs that this task sees, and end the program if others were assigned to it."""
    task = os.environ["CLUSTER_KIT_TASK"]
    event = {"time": round(time.time(), 3), "event": "devices"}
    event |= {"of": task, "promised": [gpu.name for gpu in promised]}
    message = promises.broken_promise(task, promised, sees)
    event |= {"sees": [promises.shown(gpu) for gpu in sees], "broken": message}
    with open(os.environ["CLUSTER_KIT_PROGRESS"], "a") as progress:  # noqa: PTH123
        progress.write(json.dumps(event) + "\n")
    if message and os.environ.get("CLUSTER_KIT_GPU_CHECK") != "off":
        mailbox.leave_last_words(message, mailbox.GPU_MISSING)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(EXIT_GPU_MISSING)  # no `except` of the program can continue without its GPUs


def gpus_seen(tf: ModuleType, gpus: Sequence[Any], promises: ModuleType) -> list[Any]:
    """TensorFlow's GPUs by product name, with the driver's facts if both see the same number."""
    names = [tf.config.experimental.get_device_details(g).get("device_name", g.name) for g in gpus]
    known = promises.cuda_devices() if gpus else []
    if len(known) != len(names):
        return [promises.Gpu(name) for name in names]
    return [promises.Gpu(name, gpu.pci, gpu.uuid) for name, gpu in zip(names, known)]


def number(variable: str) -> int:
    """The whole number in an environment variable; 0 if it is absent or empty."""
    return int(float(os.environ.get(variable) or 0))


def accept_growth_under_a_limit() -> None:
    """Ignore a program's request for memory growth, as in tutorials: TensorFlow refuses it with a
    limit."""
    from tensorflow.python.eager import context

    ours = context.context()
    set_growth = ours.set_memory_growth
    limited = {device for device in ours._virtual_device_map if device.device_type == "GPU"}

    def set_memory_growth(device: object, enable: bool) -> None:
        if device not in limited:
            set_growth(device, enable)

    ours.set_memory_growth = set_memory_growth


def fill_in_configurations() -> None:
    """Apply the limits to sessions and servers with their own ConfigProto, or without one, too."""
    from tensorflow.python.client import session
    from tensorflow.python.eager import context
    from tensorflow.python.training import server_lib

    def filled(config: object) -> object:
        ours = context.context().config
        full = type(ours)()
        if config is not None:
            full.CopyFrom(config)
        if not full.HasField("gpu_options"):
            full.gpu_options.CopyFrom(ours.gpu_options)
        elif not sized(full.gpu_options):
            full.gpu_options.experimental.virtual_devices.extend(
                ours.gpu_options.experimental.virtual_devices
            )
        if not full.device_count:
            full.device_count.update(ours.device_count)
        return full

    def sized(options: object) -> bool:
        return bool(
            options.experimental.virtual_devices
            or options.per_process_gpu_memory_fraction
            or options.visible_device_list
        )

    make_server_def, make_session = server_lib._make_server_def, session.BaseSession.__init__

    def server_def(*arguments: object, **keys: object) -> object:
        definition = make_server_def(*arguments, **keys)
        definition.default_session_config.CopyFrom(filled(definition.default_session_config))
        return definition

    def new_session(self, target="", graph=None, config=None):
        make_session(self, target, graph, config if config is None or target else filled(config))

    server_lib._make_server_def = server_def
    session.BaseSession.__init__ = new_session
