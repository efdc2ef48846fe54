"""A Slurm cluster for tests on one machine: munge, a controller, and three nodes.

All of it runs in separate namespaces: its network has no connection to other networks, its names
are in a separate hosts file, and all its processes end with the namespace's first process.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "unshare", "nsenter", "ip")
NODES = ("n1", "n2", "n3")
CPUS = 8
"""The CPUs of each node, whatever the machine has."""
PATIENCE_S = 30.0
CONFIG = """
ClusterName=tests
SlurmctldHost={host}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=2
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
PartitionName=main Nodes={nodes} Default=YES MaxTime=INFINITE State=UP
"""
INIT = """
ip link set lo up
for address in {addresses}; do ip addr add "$address/32" dev lo; done
mount --bind {folder}/hosts /etc/hosts
munged --force --key-file={folder}/munge.key --socket={folder}/munge.socket \\
  --pid-file={folder}/munged.pid --log-file={folder}/munged.log --seed-file={folder}/munge.seed
slurmctld -D > {folder}/slurmctld.out 2>&1 &
for node in {nodes}; do slurmd -D -N "$node" > {folder}/"$node".out 2>&1 & done
exec sleep infinity
"""


def python() -> str:
    """Returns the Python with TensorFlow in which tasks run: `TF_PYTHON`, else this one; "" if
    there is none."""
    if given := os.environ.get("TF_PYTHON"):
        return given if shutil.which(given) else ""
    return sys.executable if importlib.util.find_spec("tensorflow") else ""


def why_not() -> str:
    """Returns why no Slurm can be started here; "" if it can."""
    if os.geteuid() != 0:
        return "starting Slurm's daemons takes root"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"no {missing[0]} on this machine: Debian has it in slurm-wlm, munge or iproute2"
    if not python():
        return "no Python with TensorFlow: name one, TF_PYTHON=/some/venv/bin/python"
    return ""


@dataclass(frozen=True)
class Slurm:
    """The cluster; everything in it ends with the process `init`."""

    folder: Path
    init: int

    def run(self, folder: Path, *command: str, timeout_s: float = 240) -> str:
        """Returns the output of a command that is run on the nodes in this directory; it may
        fail."""
        inside = ["nsenter", f"--target={self.init}", "--mount", "--net", "--pid"]
        done = subprocess.run(
            [*inside, f"--wd={folder}", *command],
            env={**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return done.stdout

    def submit(self, folder: Path, script: str) -> int:
        """Submit a job; returns its number."""
        output = self.run(folder, "sbatch", "--parsable", script)
        assert output.strip().isdecimal(), output
        return int(output)

    def wait(self, folder: Path, job: int, within_s: float = 240) -> int:
        """Returns the exit code of a job when it has ended."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            output = self.run(folder, "scontrol", "show", "job", str(job))
            found = dict(word.split("=", 1) for word in output.split() if "=" in word)
            if found.get("JobState") not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"):
                return int(found["ExitCode"].partition(":")[0])
            time.sleep(0.3)
        raise AssertionError(output)


@contextlib.contextmanager
def slurm() -> Iterator[Slurm]:
    """Start a cluster with idle nodes; it ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="ck-slurm-"))  # The path of a socket must be short.
    addresses = [f"10.99.0.{number}" for number, _ in enumerate(NODES, 1)]
    _write(folder, addresses)
    script = INIT.format(folder=folder, nodes=" ".join(NODES), addresses=" ".join(addresses))
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    process = subprocess.Popen(
        [*command, "bash", "-ec", script],
        env={**os.environ, "SLURM_CONF": str(folder / "slurm.conf")},
        stdin=subprocess.DEVNULL,
        stdout=(folder / "init.out").open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        made = Slurm(folder, _child(process.pid))
        _wait_until_idle(made)
        yield made
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _write(folder: Path, addresses: Sequence[str]) -> None:
    folder.chmod(0o755)
    for name in ("state", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(secrets.token_bytes(64))
    (folder / "munge.key").chmod(0o600)
    host = os.uname().nodename
    names = [f"{address} {node}" for address, node in zip(addresses, NODES, strict=True)]
    names[0] += f" {host}"
    (folder / "hosts").write_text("\n".join([*names, "127.0.0.1 localhost", ""]))
    nodes = [
        f"NodeName={node} NodeHostname={host} NodeAddr={address} Port={7000 + number} "
        f"CPUs={CPUS} RealMemory=4000 State=UNKNOWN"
        for number, (node, address) in enumerate(zip(NODES, addresses, strict=True))
    ]
    text = CONFIG.format(host=host, folder=folder, nodes=",".join(NODES))
    (folder / "slurm.conf").write_text(text + "\n".join(nodes) + "\n")


def _child(parent: int) -> int:
    """Returns the process id, on this machine, of the first process in the namespace."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with contextlib.suppress(OSError, IndexError):
            return int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])
        time.sleep(0.05)
    raise AssertionError("unshare started nothing")


def _wait_until_idle(made: Slurm) -> None:
    until, output = time.monotonic() + PATIENCE_S, ""
    while time.monotonic() < until:
        output = made.run(made.folder, "timeout", "3", "sinfo", "--noheader", "--format=%T %D")
        if output.split() == ["idle", str(len(NODES))]:
            return
        time.sleep(0.3)
    logs = "\n".join(file.read_text() for file in made.folder.glob("*.out"))
    raise AssertionError(f"{output}\n{logs[-3000:]}")
