"""Completes a task's environment: adds the shared variables, and writes secrets to files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path

from trainer.agent.errors import ContractError
from trainer.agent.start_anew import start_anew
from trainer.agent.task import EVALUATOR, role_of

SHARED = "CLUSTER_KIT_SHARED"


def start_anew_with_shared(arguments: Sequence[str]) -> None:
    """Execute the trainer again with the variables that it lacks; return if none is missing.

    Changing `os.environ` is not enough: code in TensorFlow reads /proc/self/environ.
    """
    if more := missing_variables(os.environ):
        start_anew(arguments, {**os.environ, **more})


def missing_variables(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that the file adds to this environment; {} if no file is named.

    It overrides no variable: an evaluator, for example, has a different TF_CONFIG. Raises
    ContractError if the file or the task's name is invalid.
    """
    path = env.get(SHARED, "")
    if not path:
        return {}
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        variables = {str(name): str(value) for name, value in content["variables"].items()}
        name = env.get("CLUSTER_KIT_TASK", "")
        variables["TF_CONFIG"] = _config(content["cluster"], name)
        if name.startswith(EVALUATOR):
            variables["CLUSTER_KIT_TRAINING"] = json.dumps(content["cluster"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as problem:
        raise ContractError(
            f"{SHARED} = {path!r}: must be a JSON file with cluster and variables"
            f" ({type(problem).__name__}: {problem})"
        ) from problem
    return {name: value for name, value in variables.items() if name not in env}


def _config(cluster: Mapping[str, object], name: str) -> str:
    """The TF_CONFIG of the task with this name; the chief's job can be called `master`."""
    role, _, index = name.rpartition("-")
    job = next((job for job in cluster if role_of(job) == role), role)
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": int(index)}})


SECRETS = "CLUSTER_KIT_SECRETS"
SECRETS_FOLDER = Path("/run/secrets")


def write_secrets(
    environment: MutableMapping[str, str] = os.environ, folder: Path = SECRETS_FOLDER
) -> None:
    """Write each secret to a file with its name that only this user can read.

    Remove the secret's variable from the environment, unless the task needs it as a variable, too.

    Raises:
        ContractError: a variable is missing, or a file cannot be written.
    """
    text = environment.pop(SECRETS)
    try:
        wanted = {name: (row["variable"], row["stays"]) for name, row in json.loads(text).items()}
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise ContractError(f"{SECRETS} = {text[:200]!r}: must be JSON") from problem
    for name, (variable, _) in wanted.items():
        if variable not in environment:
            raise ContractError(
                f"{variable} is not set: it must hold the value of the secret {name}"
            )
        try:
            _write(folder / name, environment[variable])
        except OSError as problem:
            raise ContractError(f"cannot write {folder / name}: {problem.strerror}") from problem
    for variable, stays in wanted.values():
        if not stays:
            environment.pop(variable, None)


def _write(path: Path, value: str) -> None:
    path.unlink(missing_ok=True)  # left by an earlier attempt
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(value)
