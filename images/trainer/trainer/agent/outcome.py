"""How a task ended: the last line of its progress file, and its exit code."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from trainer.agent.atomic import read
from trainer.agent.progress_file import Progress
from trainer.contract.endings import EXIT_FAILED, FAILED, FINISHED, REASONS, STOPPED

"""Exit code by reason, if the reason alone decides it."""

NOT_COUNTED = ("lo", "shaped0")
"""Interfaces to leave out of the counts: data of the second one has already passed eth0."""


@dataclass(frozen=True)
class Outcome:
    """Exit code, reason (see above), message (its first line is the summary), tasks to blame."""

    exit_code: int
    reason: str
    message: str
    tasks: tuple[str, ...] = ()
    after_job: bool = False
    """Whether a program failed because a successful job ended, which is not its own failure."""
    printed: bool = False
    """Whether the program has printed the message itself."""
    decided: str = ""
    """Who decided how the job ended, if a policy of the manifest did."""
    stays: bool = False
    """Whether the program has ended for good, and the container ends with the job."""
    in_tmp: tuple[str, ...] = ()
    """Models and checkpoints that the program has left in /tmp."""
    forgotten: int = 0
    """Functions of a coordinator that no worker had finished when the program ended."""

    @property
    def headline(self) -> str:
        """The message's first line."""
        return self.message.partition("\n")[0]

    def because_of(self, why: str) -> Outcome:
        """The outcome with `why` after the first line of its message."""
        first, newline, rest = self.message.partition("\n")
        bare = first.removesuffix(":")
        said = f"{bare} ({why}){first[len(bare) :]}{newline}{rest}"
        return replace(self, message=said, printed=False)

    def record(self, progress: Progress) -> None:
        progress.write(
            "end",
            exit_code=self.exit_code,
            reason=self.reason,
            message=self.message,
            tasks=list(self.tasks),
            after_job=self.after_job,
            decided=self.decided,
            stays=self.stays,
            in_tmp=list(self.in_tmp),
            forgotten=self.forgotten,
            **traffic(),
        )


def tidy(text: str) -> str:
    """The text without empty lines and spaces at its ends; indentation is kept."""
    return "\n".join(line.rstrip() for line in text.strip().splitlines() if line.strip())


def traffic(table: Path = Path("/proc/net/dev")) -> dict[str, int]:
    """`rx_bytes` and `tx_bytes` of this container so far, loopback left out; {} if unknown."""
    try:
        rows = [line.split(":") for line in read(table).decode().splitlines() if ":" in line]
    except OSError:
        return {}
    counts = [row[1].split() for row in rows if row[0].strip() not in NOT_COUNTED]
    return {
        "rx_bytes": sum(int(count[0]) for count in counts),
        "tx_bytes": sum(int(count[8]) for count in counts),
    }


IN_ONE_FILE = (".h5", ".keras", ".tflite")
DEEPEST, MOST_FOLDERS, MOST_LEFT = 3, 500, 3


def models_in(folder: str) -> tuple[str, ...]:
    """The first models and checkpoints below a directory, without caches and mounts."""
    found: list[str] = []
    for path, folders, files in islice(os.walk(folder), MOST_FOLDERS):
        index = next((name for name in sorted(files) if name.endswith(".index")), "")
        if path != folder and ("saved_model.pb" in files or ("checkpoint" in files and index)):
            found.append(path)
            folders.clear()
            continue
        found += [f"{path}/{name}" for name in sorted(files) if name.endswith(IN_ONE_FILE)]
        found += (
            [f"{path}/{index.removesuffix('.index')}"] if "checkpoint" in files and index else []
        )
        folders[:] = [
            name
            for name in sorted(folders)
            if not name.startswith((".", "cluster-kit-", "tfhub_modules"))
            and not os.path.ismount(f"{path}/{name}")
            and path.count("/") - folder.count("/") < DEEPEST
        ]
    return tuple(found[:MOST_LEFT])


def stopped() -> Outcome:
    """The outcome of a task that got SIGTERM or SIGINT."""
    return because(STOPPED, "stopped by SIGTERM")


def because(reason: str, message: str, tasks: tuple[str, ...] = ()) -> Outcome:
    """The outcome for a reason that decides the exit code; an unknown one is a failure."""
    known = REASONS.get(reason)
    code = EXIT_FAILED if known is None or known.exit_code is None else known.exit_code
    return Outcome(code, reason, message, tasks)


def program_ended(returncode: int, last_words: str = "") -> Outcome:
    """The outcome of a program by its return code (negative: killed by that signal)."""
    if returncode == 0:
        return Outcome(0, FINISHED, last_words or "the program finished")
    if returncode < 0:
        names = {int(one): one.name for one in signal.Signals}  # most real-time signals have none
        name = names.get(-returncode, f"signal {-returncode}")
        return Outcome(128 - returncode, FAILED, f"the program was killed by {name}")
    if last_words:
        return Outcome(returncode, FAILED, last_words, printed=True)
    return Outcome(returncode, FAILED, f"the program ended with exit code {returncode}")
