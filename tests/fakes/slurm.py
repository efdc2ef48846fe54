"""Slurm's commands as far as a job's script calls them, and a Python that replaces the tasks'.

`srun` starts a process for each line of the hostfile, with the variables that Slurm sets for each.
The Python records its environment and arguments, and ends as the test says; the real one makes the
verdict.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SCONTROL = """#!/bin/bash
echo "$3" | tr , '\\n'
"""
SRUN = """#!/bin/bash
declare -A seen
echo "$*" >> "$FAKE/srun"
while [[ $1 == --* ]]; do shift; done
number=0 pids=()
while read -r host; do
  SLURMD_NODENAME=$host SLURM_LOCALID=${seen[$host]:-0} SLURM_PROCID=$number "$@" &
  pids+=("$!")
  seen[$host]=$((${seen[$host]:-0} + 1)) number=$((number + 1))
done < "$SLURM_HOSTFILE"
trap 'kill "${pids[@]}" 2> /dev/null' TERM
code=0
for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
exit "$code"
"""
GETENT = """#!/bin/bash
[[ -z ${FAKE_LOOPBACK:-} ]] || echo "127.0.1.1 $2"
"""
SCANCEL = """#!/bin/bash
echo "$*" >> "$FAKE/scancel"
"""
SLEEP = """#!/bin/bash
exec /bin/sleep 0.05
"""
TASK = """
import json, os, pathlib, sys, time
if "verdict" in sys.argv:
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
task, output = os.environ["CLUSTER_KIT_TASK"], pathlib.Path(os.environ["CLUSTER_KIT_OUTPUT"])
told = output / f"told-{task}.jsonl"
before = told.read_text().count("\\n") if told.exists() else 0
with told.open("a") as file:
    file.write(json.dumps({"environment": dict(os.environ), "arguments": sys.argv[1:]}) + "\\n")
print(f"{task} says hello")
plan = json.loads(os.environ["FAKE_ENDS"]).get(task, [])
step = plan[before] if before < len(plan) else {"code": 0}
leader = output.parent / "ended" / os.environ["CLUSTER_KIT_LEADER"]
while step.get("after_leader") and not leader.exists():
    time.sleep(0.02)
other, count = step.get("after", ("", 0))
others = output / f"told-{other}.jsonl"
while count and not (others.exists() and others.read_text().count("\\n") >= count):
    time.sleep(0.02)
if "end" in step:
    with (output / "progress" / f"{task}.jsonl").open("a") as file:
        file.write(json.dumps({"time": 1.0, "event": "end", **step["end"]}) + "\\n")
sys.exit(step["code"])
"""


@dataclass(frozen=True)
class Job:
    """A script that has run: its exit code, its output, and the directory of its run."""

    code: int
    said: str
    folder: Path

    @property
    def run(self) -> Path:
        (run,) = (path for path in self.folder.glob("runs/*/*") if not path.is_symlink())
        return run

    def told(self, task: str) -> list[dict[str, dict[str, str]]]:
        """Returns how a task was started, each time."""
        lines = (self.run / "output" / f"told-{task}.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


def commands(folder: Path) -> Path:
    """Write the commands, and return their folder, for PATH; the Python is `python3` there."""
    place = folder / "bin"
    place.mkdir(exist_ok=True)
    programs = {"scontrol": SCONTROL, "srun": SRUN, "scancel": SCANCEL, "sleep": SLEEP}
    programs["getent"] = GETENT
    programs["python3"] = f"#!{sys.executable} -IS\n{TASK}"
    for name, text in programs.items():
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    return place


def submit(
    text: str,
    folder: Path,
    nodes: Sequence[tuple[str, str]],
    ends: Mapping[str, Sequence[Mapping[str, object]]] | None = None,
    **environment: str,
) -> Job:
    """Run a script as Slurm would; returns how it ended.

    Args:
        nodes: for each part of the job (names, tasks per node), as Slurm writes them.
        ends: how each start of a task ends: `code`, `end` for its progress file, `after_leader`,
            `after` this many starts of another task.
    """
    script = folder / "slurm_script"
    script.write_text(text, encoding="utf-8")
    given = {**os.environ, "FAKE": str(folder), "FAKE_ENDS": json.dumps(ends or {})}
    given |= {
        "SLURM_SUBMIT_DIR": str(folder),
        "PATH": f"{commands(folder)}:{os.environ['PATH']}",
        "SLURM_JOB_ID": "7",
    }
    for number, (names, slots) in enumerate(nodes):
        group = f"_HET_GROUP_{number}" if len(nodes) > 1 else ""
        given |= {f"SLURM_JOB_NODELIST{group}": names, f"SLURM_TASKS_PER_NODE{group}": slots}
    done = subprocess.run(
        ["bash", str(script)],
        cwd=folder,
        env={**given, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return Job(done.returncode, done.stdout, folder)
