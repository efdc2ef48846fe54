"""Doubles of other projects' actions that a workflow uses; they record their inputs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from tests.ci.steps import Double, Runner, Step


class Others:
    """Doubles of other projects' actions, by name; `given` has the inputs of each."""

    def __init__(self) -> None:
        self.given: dict[str, Mapping[str, str]] = {}
        self.answers: dict[str, Mapping[str, str]] = {
            "actions/checkout": {},
            "actions/setup-python": {"python-path": shutil.which("python3") or ""},
            "actions/cache/restore": {"cache-hit": "", "cache-primary-key": "the-key"},
            "actions/cache/save": {},
            "actions/upload-artifact": {},
        }

    def doubles(self) -> dict[str, Double]:
        def double(name: str) -> Double:
            def answer(words: Mapping[str, str]) -> Mapping[str, str]:
                self.given[name] = words
                return self.answers[name]

            return answer

        return {name: double(name) for name in self.answers}


def named(runner: Runner, name: str) -> Step:
    (step,) = (step for step in runner.steps if step.name == name)
    return step
