"""Variables that all tasks of a cluster share, from one file: a large cluster names every task
once in it, and not once more in each container's environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainer.agent.errors import ContractError
from trainer.agent.start_anew import start_anew
from trainer.agent.task import EVALUATOR, role_of

PATH = "CLUSTER_KIT_SHARED"


def start_anew_if_lacking(arguments: Sequence[str]) -> None:
    """Start the trainer anew with what its environment lacks; return if it has everything.

    A changed `os.environ` is not enough: what runs in TensorFlow reads /proc/self/environ.
    """
    if more := lacking(os.environ):
        start_anew(arguments, {**os.environ, **more})


def lacking(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that the file adds to this environment; {} if no file is named.

    What the environment has stays as it is: an evaluator has a TF_CONFIG of its own. Raises
    ContractError if the file or the task's name is wrong.
    """
    path = env.get(PATH, "")
    if not path:
        return {}
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        found = {str(name): str(value) for name, value in content["variables"].items()}
        name = env.get("CLUSTER_KIT_TASK", "")
        found["TF_CONFIG"] = _config(content["cluster"], name)
        if name.startswith(EVALUATOR):
            found["CLUSTER_KIT_TRAINING"] = json.dumps(content["cluster"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as problem:
        raise ContractError(
            f"{PATH} = {path!r}: must be a JSON file with cluster and variables"
            f" ({type(problem).__name__}: {problem})"
        ) from problem
    return {name: value for name, value in found.items() if name not in env}


def _config(cluster: Mapping[str, object], name: str) -> str:
    """TF_CONFIG of the task with this name; the job of a chief may be called `master`."""
    role, _, index = name.rpartition("-")
    job = next((job for job in cluster if role_of(job) == role), role)
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": int(index)}})
