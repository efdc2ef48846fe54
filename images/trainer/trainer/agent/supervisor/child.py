"""The program as a child process that cannot outlive its supervisor."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.agent import outcome
from trainer.agent.beacon import handshake
from trainer.agent.errors import ContractError
from trainer.agent.injected import mailbox, stacks
from trainer.agent.last_words import telling
from trainer.agent.outcome import Outcome, tidy
from trainer.agent.stacks import stack_file
from trainer.agent.start_anew import SAFE
from trainer.agent.supervisor.functions import Functions
from trainer.agent.task import CHIEF_JOBS, EVALUATOR, Task
from trainer.contract import endings
from trainer.contract.times import PROGRAM_SAVE_S, PROGRAM_STOP_S

AGENT = Path(__file__).parents[1]
PACKAGE = AGENT.parent
INJECTED = AGENT / "injected"
HOOKS = INJECTED / "on_path"
FOR_PROGRAMS = INJECTED / "for_programs"
RUNNER = INJECTED / "runner.py"
DEBUGGED = INJECTED / "debugger" / "debugged.py"
PROGRAMS = PACKAGE / "programs"
TRAINING = "CLUSTER_KIT_TRAINING"
AFTER_IMPORT = "CLUSTER_KIT_AFTER_IMPORT"
"""What injected/ does at the end of `import tensorflow`: `devices`, `closures`, by commas."""
COUNT_STEPS = "CLUSTER_KIT_COUNT_STEPS"
DEVICE_FILTERS = "CLUSTER_KIT_DEVICE_FILTERS"


@dataclass(frozen=True)
class ProgramEnded:
    """A program's return code: negative when a signal killed it."""

    attempt: int
    returncode: int


@dataclass(frozen=True)
class Program:
    """The command to run. A built-in program itself asks the mailbox whether the servers answer."""

    command: tuple[str, ...]
    builtin: bool


def find_program(name: str, arguments: Sequence[str]) -> Program:
    """`name` is a built-in program (`classifier`) or the path of a Python file."""
    package = name.replace("-", "_")
    if package.isidentifier() and (PROGRAMS / package / "__main__.py").exists():
        return Program(
            (sys.executable, *SAFE, "-m", f"trainer.programs.{package}", *arguments), builtin=True
        )
    if Path(name).is_file():
        runner = (str(RUNNER),) if name.endswith(".py") else ()
        return Program((sys.executable, *runner, name, *arguments), builtin=False)
    builtins = ", ".join(
        sorted(path.parent.name.replace("_", "-") for path in PROGRAMS.glob("*/__main__.py"))
    )
    raise ContractError(
        f"program {name!r}: neither a file in this container nor one of {builtins};"
        " give a path under /program"
    )


def debugged() -> bool:
    """Whether this task's program waits for a debugger, and may pause without a time limit."""
    return bool(os.environ.get("CLUSTER_KIT_DEBUG"))


def counts_steps() -> bool:
    """Whether to count the steps of a program that reports none, inside its process."""
    return os.environ.get(COUNT_STEPS) != "off"


def under_debugger(program: Program) -> tuple[str, ...]:
    """Return the program's command, changed to wait for a debugger if the program is Python."""
    python, *words = program.command
    if not program.builtin and words[0] != str(RUNNER):
        return program.command
    # Without this, debugpy misses breakpoints in frozen standard modules, and prints a warning.
    return (python, "-Xfrozen_modules=off", str(DEBUGGED), *words)


def has_estimators() -> bool:
    """Whether this image's TensorFlow has tf.estimator: below 2.16."""
    return importlib.util.find_spec("tensorflow_estimator") is not None


def training_cluster(task: Task, text: str) -> dict[str, str]:
    """Return an evaluator's TF_CONFIG with the training cluster, but without the evaluator.

    An Estimator requires this form. Returns {} for other tasks, and if there is no chief.
    """
    cluster = json.loads(text or "{}")
    if task.role != EVALUATOR or CHIEF_JOBS[0] not in cluster:
        return {}
    config = {"cluster": cluster, "task": {"type": task.job, "index": task.index}}
    return {"TF_CONFIG": json.dumps(config)}


class Child:
    """One attempt at the program; `then` is called from a thread when it has ended."""

    def __init__(
        self, task: Task, program: Program, attempt: int, then: Callable[[ProgramEnded], None]
    ) -> None:
        self.mailbox = Path(tempfile.mkdtemp(prefix="cluster-kit-"))
        self._task = task
        # A small process first requests to be killed with its parent, then executes the program:
        # preexec_fn would run Python between fork and exec while other threads hold locks.
        parent_death = (
            sys.executable,
            "-I",
            "-S",
            str(INJECTED / "parent_death.py"),
            str(os.getpid()),
        )
        # Files that a user's program writes to its working directory are kept in the output.
        folder = None if program.builtin else task.output
        command = under_debugger(program) if debugged() else program.command
        self._process = subprocess.Popen(
            (*parent_death, *command), env=self._environment(program), cwd=folder
        )
        threading.Thread(
            target=lambda: then(ProgramEnded(attempt, self._process.wait())), daemon=True
        ).start()

    def tell(self, name: str) -> None:
        """Create an empty file `name` in the program's mailbox."""
        (self.mailbox / name).touch()

    def functions(self) -> Functions:
        """Return the scheduled functions and those that the workers finished; none without a
        coordinator.
        """
        try:
            return Functions.parse(self._read(mailbox.CLOSURES))
        except OSError:
            return Functions()

    def finished(self) -> Mapping[str, int]:
        """Return the number of functions that each worker has finished, by the worker's name."""
        return self.functions().finished

    @property
    def is_final(self) -> bool:
        """Whether the program has reported that another attempt would fail in the same way."""
        return (self.mailbox / mailbox.FINAL).exists()

    def waits_for(self) -> str:
        """Which threads keep the program from ending; '' if none does."""
        return self._read(mailbox.THREADS) if self._process.poll() is None else ""

    def outcome(self, returncode: int) -> Outcome:
        """The outcome for the return code, with the program's own message."""
        missing = self._read(mailbox.GPU_MISSING)
        if missing and returncode:
            return outcome.because(endings.GPU_MISSING, missing, (self._task.name,))
        return outcome.program_ended(returncode, telling(self._read(mailbox.LAST_WORDS)))

    def _environment(self, program: Program) -> dict[str, str]:
        environment = dict(os.environ)
        environment.pop(
            handshake.VARIABLE, None
        )  # so that a program that prints its variables does not reveal it
        environment[mailbox.VARIABLE] = str(self.mailbox)
        environment["CLUSTER_KIT_TASK"] = self._task.name
        environment["CLUSTER_KIT_PROGRESS"] = str(self._task.progress_file)
        environment.setdefault("PYTHONUNBUFFERED", "1")
        environment["CLUSTER_KIT_SILENT_S"] = f"{self._task.silent_s:g}"
        training = environment.pop(TRAINING, "")
        if not program.builtin and not self._task.own_server and has_estimators():
            environment |= training_cluster(self._task, training)
        path = [environment.get("PYTHONPATH", "")]
        if program.builtin:
            path.insert(0, str(PACKAGE.parent))
        else:
            path.append(str(FOR_PROGRAMS))  # last, so that the modules of the program come first
        path.insert(0, str(HOOKS))
        environment[AFTER_IMPORT] = ",".join(self._hooks(program))
        environment[stacks.VARIABLE] = str(self.mailbox / "stacks")
        stack_file(self._task.name).write_text(environment[stacks.VARIABLE])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        return environment

    def _hooks(self, program: Program) -> list[str]:
        task, hooks = self._task, ["iterators"]
        hooks += ["connections"] if task.silent_s else []
        if task.gpus or task.gpu_memory_mb or task.simulate_gpus:
            hooks.append("devices")
        if not program.builtin:
            hooks += ["refuse", "sessions", "sigterm"]
            hooks += ["tf1"] if task.tf1 else []
            hooks += ["own-server"] if task.own_server else []
            hooks += ["filters"] if os.environ.get(DEVICE_FILTERS) == "own" else []
        if not program.builtin and not task.is_leader:
            hooks += ["join", "imported", "built"]
        if not program.builtin and task.role == EVALUATOR:
            hooks += ["checkpoints", "estimator"] if has_estimators() else ["checkpoints"]
        coordinates = task.is_leader and any(name.startswith("worker-") for name in task.servers)
        may_coordinate = task.role == "chief" and "ps" in task.cluster and task.is_leader
        if coordinates or (may_coordinate and not program.builtin and not task.tf1):
            hooks.append("closures")  # workers that run the program may start their servers
        if not program.builtin and not task.tf1 and task.role != EVALUATOR and counts_steps():
            hooks += [] if coordinates else ["steps"]  # it counts functions instead
            hooks += ["epochs"] if task.is_leader else []
        if task.is_leader and "ps" in task.cluster and not program.builtin:
            hooks += ["placement", "imported", "peers"]
        others = task.servers or (task.peers and "ps" in task.cluster)
        if task.is_leader and others and not program.builtin:
            hooks.append("servers")
        return hooks

    def _read(self, name: str) -> str:
        file = self.mailbox / name
        return tidy(file.read_text(errors="replace")) if file.exists() else ""

    def stop(self) -> None:
        """End the program: SIGTERM, then SIGKILL after PROGRAM_STOP_S (saving: PROGRAM_SAVE_S)."""
        self._process.terminate()
        for patience_s in (PROGRAM_STOP_S, PROGRAM_SAVE_S - PROGRAM_STOP_S):
            try:
                self._process.wait(patience_s)
                return
            except subprocess.TimeoutExpired:
                if not (self.mailbox / mailbox.SAVING).exists():
                    break
        self._process.kill()
        self._process.wait()
