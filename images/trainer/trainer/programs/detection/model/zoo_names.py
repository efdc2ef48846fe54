"""The names of a MobileNet's variables in checkpoints of others: slim, the Object Detection API.

`bn_Conv1/gamma` here is `MobilenetV2/Conv/BatchNorm/gamma` there, with or without
`FeatureExtractor/` before it. The order of a kernel's axes is the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

NORMS = "gamma|beta|moving_mean|moving_variance"
AVERAGE = "/ExponentialMovingAverage"
PARTS = {"kernel": "weights", "depthwise_kernel": "depthwise_weights"}
OF_OPTIMIZERS = ("optimizer/", "Adam/", "SGD/", "RMSprop/")


def slim_name(name: str) -> str:
    """What slim calls the variable `name` of tf_keras' MobileNet; "" if it has none like it."""
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
    if found := re.fullmatch(r"conv_(dw|pw)_(\d+)", layer):
        kind = {"dw": "depthwise", "pw": "pointwise"}[found[1]]
        return f"MobilenetV1/Conv2d_{found[2]}_{kind}"
    if layer in ("Conv1", "Conv_1"):
        return f"MobilenetV2/{'Conv' if layer == 'Conv1' else layer}"
    if found := re.fullmatch(r"expanded_conv_(depthwise|project)", layer):
        return f"MobilenetV2/expanded_conv/{found[1]}"
    if found := re.fullmatch(r"block_(\d+)_(expand|depthwise|project)", layer):
        return f"MobilenetV2/expanded_conv_{found[1]}/{found[2]}"
    return ""


def found_as(names: Iterable[str], there: Iterable[str]) -> dict[str, str]:
    """Each of `names` that a checkpoint holds, to the name that it has there.

    Its own name goes before slim's, and a whole name before one that others stand before, such as
    the name of a model.
    """
    by_end = endings(there)
    found = {}
    for name in names:
        for wanted in filter(None, (name, slim_name(name))):
            if wanted in by_end:
                found[name] = by_end[wanted]
                break
    return found


def endings(there: Iterable[str]) -> Mapping[str, str]:
    """Every ending of these names, whole components each, to the shortest name that ends so."""
    by_end: dict[str, str] = {}
    for full in sorted(there, key=lambda name: (len(name), name), reverse=True):
        if full.startswith(OF_OPTIMIZERS) or full.endswith(AVERAGE):
            continue
        parts = full.split("/")
        for start in range(len(parts) - 1):
            by_end["/".join(parts[start:])] = full
        by_end[full] = full
    return by_end
