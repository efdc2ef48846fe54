"""Secrets of the caller's environment as files in memory, which a program reads like any other."""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping
from pathlib import Path

from trainer.agent.errors import ContractError

VARIABLE = "CLUSTER_KIT_SECRETS"
FOLDER = Path("/run/secrets")


def write(environment: MutableMapping[str, str] = os.environ, folder: Path = FOLDER) -> None:
    """Write each secret into a file of its name that only this user may read.

    Its variable is taken out of the environment, unless the task has it as a variable, too.

    Raises:
        ContractError: a variable is missing, or a file cannot be written.
    """
    text = environment.pop(VARIABLE)
    try:
        wanted = {name: (row["variable"], row["stays"]) for name, row in json.loads(text).items()}
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise ContractError(f"{VARIABLE} = {text[:200]!r}: must be JSON") from problem
    for name, (variable, _) in wanted.items():
        if variable not in environment:
            raise ContractError(f"{variable} is not set: the secret {name} is its value")
        try:
            _write(folder / name, environment[variable])
        except OSError as problem:
            raise ContractError(f"cannot write {folder / name}: {problem.strerror}") from problem
    for variable, stays in wanted.values():
        if not stays:
            environment.pop(variable, None)


def _write(path: Path, value: str) -> None:
    path.unlink(missing_ok=True)  # of an attempt before
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(value)
