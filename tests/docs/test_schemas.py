"""The JSON Schemas of docs/schemas/ are valid and versioned, and refuse what no run writes."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from cluster_kit.platforms.platform import json_schema
from cluster_kit.run.outcome import FORMAT
from docs.json_schemas import MAKERS
from tests.make import ROOT
from tests.schemas import check, schema

TASK = {
    "name": "chief-0", "role": "chief", "index": 0, "ip": "10.0.0.2", "gpu": [], "gpu_seen": None,
    "exit_code": 0, "restarts": 0, "oom": False, "rx_bytes": 1, "tx_bytes": None,
    "usage": None,
}  # fmt: skip
OUTCOME: dict[str, Any] = {
    "cluster": "demo", "success": True, "exit_code": 0, "reason": "finished", "blame": None,
    "message": "", "last_words": "", "notes": [], "tasks": [TASK], "timings_s": {"total": 2.0},
    "metrics": {"loss": None}, "cure": "", "run": "/r", "id": "1", "kept": False,
    "program_exit_code": 0, "decided": "", "resumed": False, "format": FORMAT,
}  # fmt: skip
EVENT = {"time": 1.5, "action": "die", "task": "ps-0", "exit_code": 137}
STEP = {"time": 1.5, "event": "step", "step": 3, "loss": 0.5}


@pytest.mark.parametrize("path", MAKERS)
def test_a_schema_is_valid_and_names_its_version(path: str) -> None:
    found = json.loads((ROOT / path).read_text())
    Draft202012Validator.check_schema(found)
    what, _, version = path.rpartition("/")[2].removesuffix(".json").rpartition("-")
    assert found["$id"] == f"urn:cluster-kit:{what}:{version}"


def test_the_manifests_schema_names_its_version() -> None:
    found = json.loads((ROOT / "compose" / "schema.json").read_text())
    assert found["$id"] == json_schema()["$id"] == "urn:cluster-kit:manifest:1"
    assert found["properties"]["format"]["const"] == 1


def test_files_of_runs_are_accepted() -> None:
    check("outcome", OUTCOME)
    check("event", EVENT)
    check("progress", STEP)
    check("progress", {"time": 1, "event": "metrics", "f1": 0.5})
    check("progress", {"time": 1, "event": "a-programs-own", "anything": [1]})


WRONG = {
    "a key that there is not": ("outcome", {**OUTCOME, "blamed": "x"}),
    "a reason that there is not": ("outcome", {**OUTCOME, "reason": "tired"}),
    "another version": ("outcome", {**OUTCOME, "format": FORMAT + 1}),
    "a code that is a text": ("outcome", {**OUTCOME, "exit_code": "0"}),
    "no time": ("event", {"action": "die", "task": "ps-0", "exit_code": 1}),
    "an event with more": ("event", {**EVENT, "signal": 9}),
    "a step with more": ("progress", {**STEP, "speed": 9}),
    "an event without a name": ("progress", {"time": 1.0}),
}


@pytest.mark.parametrize("name", WRONG)
def test_files_that_no_run_writes_are_refused(name: str) -> None:
    what, value = WRONG[name]
    with pytest.raises(ValidationError):
        check(what, value)


@pytest.mark.parametrize("key", OUTCOME)
def test_the_schema_has_every_key_of_an_outcome(key: str) -> None:
    lacking = copy.copy(OUTCOME)
    del lacking[key]
    with pytest.raises(ValidationError):
        check("outcome", lacking)


@pytest.mark.parametrize("key", TASK)
def test_the_schema_has_every_key_of_a_task(key: str) -> None:
    task = {name: value for name, value in TASK.items() if name != key}
    with pytest.raises(ValidationError):
        check("outcome", {**OUTCOME, "tasks": [task]})


def test_schemas_describe_themselves() -> None:
    assert all(schema(what).schema["title"] for what in ("outcome", "event", "progress"))
