"""Fetches a cluster's data before its start: once, under a lock, and whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from cluster_kit import labels
from cluster_kit.errors import TOML_STYLE, DataFailed, HostError, KeyStyle
from cluster_kit.host import Host
from cluster_kit.image.base_image import RIGHTLESS, TMP
from cluster_kit.image.pip_config import PROXY_VARIABLES, network
from cluster_kit.observe.tracebacks import last_words, missing_package_hint
from cluster_kit.resolved import SECRETS, Cluster, Fetch
from cluster_kit.run import run_directory
from cluster_kit.run.known_secrets import values_of
from cluster_kit.show.view import View
from cluster_kit.util import process
from cluster_kit.util.locks import Locked, lock
from cluster_kit.util.masking import masker
from cluster_kit.workspace import ignore_in_git, new_id

TASK = "data"
"""The name before the data step's lines in the view."""
POLL_S = 1.0
LAST_LINES = 15
"""The lines of a failed program in its error."""


def ensure_data(host: Host, cluster: Cluster, view: View, caller: KeyStyle = TOML_STYLE) -> None:
    """Run the data step, unless its directory exists already.

    Args:
        caller: how a hint writes settings for the next run.

    Raises:
        DataFailed: the program failed, or wrote nothing; its directory is removed.
        HostError: a variable that it needs is not set, or the directory cannot be written.
    """
    step = cluster.fetch
    if step is None or Path(step.directory).is_dir():
        return
    directory = Path(step.directory)
    with run_directory.writing(directory.parent):
        directory.parent.mkdir(parents=True, exist_ok=True)
        ignore_in_git(directory.parent)
    _refuse_if_unset(step)
    announced = False
    while not directory.is_dir():
        try:
            with (
                run_directory.writing(directory.parent),
                lock(_beside(directory, "lock"), _about()),
            ):
                if not directory.is_dir():
                    _fetch(host, cluster, step, directory, view, caller)
        except Locked as held:
            if not announced:
                view.phase(f"waiting for the data, which {held.about or 'another run'} fetches")
                announced = True
            _wait(directory)


def _wait(directory: Path) -> None:
    try:
        with lock(_beside(directory, "lock"), _about(), wait_s=POLL_S):
            return
    except Locked:
        return


def _fetch(
    host: Host, cluster: Cluster, step: Fetch, directory: Path, view: View, caller: KeyStyle
) -> None:
    """Run the program in a temporary directory, and rename the directory when the data is
    complete."""
    for leftover in directory.parent.glob(f".{directory.name}.*.part"):  # of a killed fetch
        shutil.rmtree(leftover, ignore_errors=True)
    part = _beside(directory, f"{os.getpid()}.part")
    part.mkdir()
    names = (os.environ.get(name, "") for name in step.secrets)
    mask = masker({*values_of(cluster, ()), *names})
    container = f"{cluster.name}-{TASK}-{new_id()}"
    view.phase(mask(f"fetching the data: {' '.join([Path(step.script).name, *step.args])}"))
    try:
        done = host.processes.stream(
            data_command(cluster, step, part, container, os.environ),
            lambda line: view.log(TASK, mask(line)),
        )
        if not done.ok:
            tail = last_words(done.errors.strip() or done.output, LAST_LINES)
            words = f":\n{mask(tail)}" if tail else ", and it printed nothing"
            raise DataFailed(
                f"{step.script} ended with exit code {done.code}; no data was kept{words}",
                missing_package_hint(tail, caller)
                or "fix it, and run this again: it starts from the beginning",
            )
        if not any(part.iterdir()):
            raise DataFailed(
                f"{step.script} ended well, but wrote nothing",
                "it has to write into its current directory, which is /data",
            )
        part.rename(directory)
    finally:
        with process.completing():
            host.processes.run(["docker", "rm", "--force", container])
        shutil.rmtree(part, ignore_errors=True)


def data_command(
    cluster: Cluster, step: Fetch, part: Path, container: str, environment: Mapping[str, str]
) -> list[str]:
    """The command that runs the program in the cluster's image, as the tasks' user, on Docker's
    network.
    """
    script = Path(step.script)
    secrets = [mount for mount in cluster.mounts if mount.target.startswith(f"{SECRETS}/")]
    variables = [*(name for name in PROXY_VARIABLES if name in environment), *step.secrets]
    return [
        *("docker", "run", "--rm", "--init", f"--name={container}"),
        f"--label={labels.HELPER}={cluster.name}",
        *(f"--user={cluster.user}", f"--network={network(environment)}"),
        *("--read-only", "--workdir=/data"),
        *(*RIGHTLESS, TMP),
        f'--mount=type=bind,"source={part}",target=/data',
        f'--mount=type=bind,"source={script.parent}",target=/program,readonly',
        *(f'--mount=type=bind,"source={m.source}",target={m.target},readonly' for m in secrets),
        *(f"--env={name}" for name in variables),
        *("--entrypoint=python3", cluster.image, "-u", f"/program/{script.name}", *step.args),
    ]


def _refuse_if_unset(step: Fetch) -> None:
    absent = [name for name in step.secrets if not os.environ.get(name)]
    if absent:
        hint = f"`export {absent[0]}=…`, or remove it from `secrets` in [data]"
        raise HostError(f"the data step needs {', '.join(absent)}, not set here", hint)


def _beside(directory: Path, end: str) -> Path:
    return directory.with_name(f".{directory.name}.{end}")


def _about() -> str:
    return f"process {os.getpid()}"
