"""Runs the steps of a workflow's job, and of the actions in its repository, as GitHub's runner
does.

Shell steps run in bash. An action of another project is replaced by a double: a function that gets
the step's `with` and returns the outputs.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.ci.expressions import Unknown, fill, holds

Double = Callable[[Mapping[str, str]], Mapping[str, str]]
TIMEOUT_S = 300
HIDDEN = ("GITHUB_", "RUNNER_", "PYTHONPATH", "VIRTUAL_ENV", "COLUMNS")


@dataclass
class Step:
    """The result of a step; `outcome` is success, failure or skipped."""

    name: str
    outcome: str
    outputs: dict[str, str] = field(default_factory=dict)
    said: str = ""


@dataclass
class Runner:
    """A GitHub runner with a checkout of a repository; `summary` is the job's."""

    checkout: Path
    temp: Path
    doubles: Mapping[str, Double]
    environment: Mapping[str, str] = field(default_factory=dict)
    summary: str = ""
    steps: list[Step] = field(default_factory=list)

    @property
    def said(self) -> str:
        return "\n".join(step.said for step in self.steps)

    def workflow(self, path: str, job: str) -> bool:
        """Run a job's steps; returns whether all succeeded."""
        read = yaml.safe_load((self.checkout / path).read_text(encoding="utf-8"))
        return self._all(read["jobs"][job]["steps"], {"inputs": {}}, self.checkout)[0]

    def action(self, folder: Path, given: Mapping[str, str]) -> tuple[bool, dict[str, str]]:
        """Run a composite action; returns whether all steps succeeded, and its outputs."""
        read = yaml.safe_load((folder / "action.yml").read_text(encoding="utf-8"))
        if unknown := given.keys() - read["inputs"].keys():
            raise Unknown(f"the action has no inputs {unknown}")
        defaults = {name: str(of.get("default", "")) for name, of in read["inputs"].items()}
        contexts: dict[str, Any] = {"inputs": {**defaults, **given}}
        well, contexts = self._all(read["runs"]["steps"], contexts, folder)
        outputs = read.get("outputs", {})
        return well, {name: fill(of["value"], contexts) for name, of in outputs.items()}

    def some(self, folder: Path, names: Sequence[str], **contexts: Any) -> bool:
        """Run some steps of a composite action; `contexts` has the results of the others."""
        read = yaml.safe_load((folder / "action.yml").read_text(encoding="utf-8"))
        steps = [step for step in read["runs"]["steps"] if step["name"] in names]
        return self._all(steps, contexts, folder)[0]

    def _all(
        self, steps: list[dict[str, Any]], given: Mapping[str, Any], folder: Path
    ) -> tuple[bool, dict[str, Any]]:
        known = {step["id"]: {"outcome": "", "outputs": {}} for step in steps if "id" in step}
        known |= given.get("steps", {})
        contexts = {
            **given,
            "github": {"action_path": str(folder), "workspace": str(self.checkout)},
            "runner": {"temp": str(self.temp), "os": "Linux", "arch": "X64"},
            "steps": known,
        }
        failed = False
        for step in steps:
            done = self._one(step, contexts, failed)
            self.steps.append(done)
            failed |= done.outcome == "failure" and not step.get("continue-on-error")
            if "id" in step:
                known[step["id"]] |= {"outcome": done.outcome, "outputs": done.outputs}
        return not failed, contexts

    def _one(self, step: Mapping[str, Any], contexts: Mapping[str, Any], failed: bool) -> Step:
        name = step.get("name") or step.get("uses") or step["run"]
        if not holds(str(step.get("if", "success()")), contexts, failed=failed):
            return Step(name, "skipped")
        words = {key: fill(str(value), contexts) for key, value in step.get("with", {}).items()}
        uses = step.get("uses", "")
        if uses.startswith("./"):
            well, outputs = self.action(self.checkout / uses, words)
            return Step(name, "success" if well else "failure", outputs)
        if uses:
            return Step(name, "success", dict(self.doubles[uses.partition("@")[0]](words)))
        return self._shell(name, step, contexts)

    def _shell(self, name: str, step: Mapping[str, Any], contexts: Mapping[str, Any]) -> Step:
        files = {what: self.temp / f"_{what}_{len(self.steps)}" for what in ("OUTPUT", "SUMMARY")}
        for file in files.values():
            file.touch()
        script = self.temp / f"_script_{len(self.steps)}.sh"
        script.write_text(fill(step["run"], contexts), encoding="utf-8")
        shell = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(HIDDEN)}
        environment = {
            **inherited,
            **self.environment,
            "GITHUB_WORKSPACE": str(self.checkout), "RUNNER_TEMP": str(self.temp),
            "GITHUB_JOB": "smoke", "GITHUB_OUTPUT": str(files["OUTPUT"]),
            "GITHUB_STEP_SUMMARY": str(files["SUMMARY"]),
            **{key: fill(str(value), contexts) for key, value in step.get("env", {}).items()},
        }  # fmt: skip
        done = subprocess.run(
            [*(shell if step.get("shell") == "bash" else ("bash", "-e")), script],
            cwd=self.checkout / fill(step.get("working-directory", "."), contexts),
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        self.summary += files["SUMMARY"].read_text(encoding="utf-8")
        outcome = "failure" if done.returncode else "success"
        return Step(name, outcome, outputs_of(files["OUTPUT"].read_text()), done.stdout)


def outputs_of(text: str) -> dict[str, str]:
    """Returns what a step wrote to $GITHUB_OUTPUT: NAME=VALUE, or NAME<<END, lines, END."""
    found, lines = dict[str, str](), iter(text.splitlines())
    for line in lines:
        name, sign, value = line.partition("=")
        if "<<" in name or not sign:
            name, sign, end = line.partition("<<")
            value = "\n".join(iter(lambda: next(lines), end))
        if not sign:
            raise Unknown(f"{line!r} is not an output")
        found[name] = value
    return found
