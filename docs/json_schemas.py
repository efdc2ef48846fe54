"""The JSON Schemas of what a run leaves behind, made from the code: docs/schemas/."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import TypeAdapter

from cluster_kit.contract.events import EVENTS, keys_of
from cluster_kit.contract.events import Event as ProgressEvent
from cluster_kit.drill import result
from cluster_kit.drill.goodput import Goodput
from cluster_kit.drill.scenario_file import KINDS
from cluster_kit.platforms.engine import Event
from cluster_kit.predict import answer, profile
from cluster_kit.run.outcome import FORMAT, Outcome
from cluster_kit.run.verdict import Reason
from docs.blocks.contract import written_by

DRAFT = "https://json-schema.org/draft/2020-12/schema"
EVENTS_FORMAT = 1
"""Of events.jsonl and of progress files; raised when a key changes its meaning, or goes."""


def outcome() -> dict[str, Any]:
    """Of outcome.json."""
    schema = TypeAdapter(Outcome).json_schema(mode="serialization")
    task = schema["$defs"]["TaskOutcome"]
    for table in (schema, task):
        table["additionalProperties"] = False
        table["required"] = list(table["properties"])
    schema["properties"]["format"] = {"const": FORMAT}
    schema["properties"]["reason"] = {"enum": [str(reason) for reason in Reason]}
    count = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}
    task["properties"] |= {"rx_bytes": count, "tx_bytes": count}
    return _named("outcome", FORMAT, "outcome.json of a run", schema)


def drill() -> dict[str, Any]:
    """Of drill.json."""
    number, text = {"type": ["number", "null"]}, {"type": ["string", "null"]}
    count = {"type": ["integer", "null"]}
    fault = _table(
        number={"type": "integer"}, kind={"enum": list(KINDS)}, task={"type": "string"},
        at={"type": "object"}, injected_at_s=number, injected_unix_s=number, over_unix_s=number,
        step=count, detected_after_s=number, detected_by=text, going_on_after_s=number,
        steps_lost=count, steps_at_risk=count, restarts=count, not_injected=text,
        **{"for": number, "from": {"type": ["array", "null"], "items": {"type": "string"}}},
    )  # fmt: skip
    goodput = TypeAdapter(Goodput).json_schema(mode="serialization", ref_template="#/$defs/{model}")
    parts = goodput.pop("$defs")
    goodput["properties"]["sentences"] = {"type": "array", "items": {"type": "string"}}
    for table in (goodput, *parts.values()):
        table |= {"additionalProperties": False, "required": list(table["properties"])}
    schema = _table(
        format={"const": result.FORMAT}, cluster={"type": "string"}, scenario={"type": "string"},
        seed={"type": "integer"}, passed={"type": "boolean"},
        misses={"type": "array", "items": {"type": "string"}},
        faults={"type": "array", "items": fault},
        goodput={"anyOf": [goodput, {"type": "null"}]},
        success={"type": "boolean"}, reason={"enum": [str(reason) for reason in Reason]},
        blame=text, metrics={"type": "object"}, run={"type": "string"},
    )  # fmt: skip
    return _named("drill", result.FORMAT, "drill.json of a drill's run", {"$defs": parts, **schema})


def _table(**properties: Any) -> dict[str, Any]:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required,
            "additionalProperties": False}  # fmt: skip


def event() -> dict[str, Any]:
    """Of a line of events.jsonl."""
    schema = TypeAdapter(Event).json_schema(mode="serialization")
    schema["additionalProperties"] = False
    return _named("event", EVENTS_FORMAT, "A line of a run's events.jsonl", schema)


def progress() -> dict[str, Any]:
    """Of a line of output/progress/<task>.jsonl; programs may write events of their own there."""
    kinds = [_progress_event(name, kind) for name, kind in EVENTS.items()]
    of_a_program = {"properties": {"event": {"type": "string", "not": {"enum": [*EVENTS]}}}}
    schema = {
        "type": "object",
        "properties": {"time": {"type": "number"}, "event": {"type": "string"}},
        "required": ["time", "event"],
        "oneOf": [*kinds, of_a_program],
    }
    title = "A line of a task's progress file"
    return _named("progress", EVENTS_FORMAT, title, schema)


def predict() -> dict[str, Any]:
    """Of what `predict --json` prints."""
    return _named("predict", answer.FORMAT, "What `predict --json` prints", answer.json_schema())


def predict_profile() -> dict[str, Any]:
    """Of a profile for `predict`."""
    return _named("profile", profile.FORMAT, "A profile for `predict`", profile.json_schema())


def _progress_event(name: str, kind: type[ProgressEvent]) -> dict[str, Any]:
    keys = {one.name: {"description": one.metadata["meaning"]} for one in keys_of(kind)}
    properties = {"time": True, "event": {"const": name}, **keys}
    return {
        "description": written_by(kind),
        "properties": properties,
        "additionalProperties": kind.open,
    }


def _named(what: str, version: int, title: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    about = {"$schema": DRAFT, "$id": f"urn:cluster-kit:{what}:{version}", "title": title}
    return {**about, **{key: value for key, value in schema.items() if key != "title"}}


MAKERS: Mapping[str, Callable[[], dict[str, Any]]] = {
    f"docs/schemas/outcome-{FORMAT}.json": outcome,
    f"docs/schemas/drill-{result.FORMAT}.json": drill,
    f"docs/schemas/event-{EVENTS_FORMAT}.json": event,
    f"docs/schemas/progress-{EVENTS_FORMAT}.json": progress,
    f"docs/schemas/predict-{answer.FORMAT}.json": predict,
    f"docs/schemas/profile-{profile.FORMAT}.json": predict_profile,
}
"""By the path of the file, seen from the root."""


def texts() -> dict[str, str]:
    """The content of each file, by its path."""
    return {path: f"{json.dumps(make(), indent=2)}\n" for path, make in MAKERS.items()}
