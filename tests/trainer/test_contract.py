"""contract.toml says what the code does: each variable, event, reason, exit code and time once."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from trees import nodes_of

from trainer import __main__ as command
from trainer.agent import errors, outcome, usage
from trainer.agent.beacon import handshake
from trainer.agent.beacon.messages import (
    Beat,
    Done,
    End,
    Failed,
    Hello,
    Report,
    Stacks,
    Stopping,
    encode,
)
from trainer.agent.injected import mailbox, stacks
from trainer.agent.injected.debugger import debugged
from trainer.agent.injected.gpus import promise
from trainer.agent.stragglers import pace
from trainer.agent.usage import Usage

PACKAGE = Path(errors.__file__).parents[1]
CONTRACT = tomllib.loads((PACKAGE.parent / "contract.toml").read_text(encoding="utf-8"))
FILES = sorted(PACKAGE.rglob("*.py"))
USAGE = ["CPU_SECONDS", "RECEIVED", "SENT", "THROTTLED_SECONDS", "FAULTS", "MEMORY_SECONDS", "CPUS",
         "BANDWIDTH"]  # fmt: skip
CODE = "\n".join(file.read_text(encoding="utf-8") for file in FILES)


def test_every_variable_is_in_the_contract_and_in_the_code():
    used = set(re.findall(r"\bCLUSTER_KIT_[A-Z_]+|\bTF_CONFIG\b", CODE))
    assert used == set(CONTRACT["variables"])
    assert {entry["set_by"] for entry in CONTRACT["variables"].values()} == {"host", "image"}


def test_the_variables_that_the_host_sets_are_those_that_are_read():
    """What the supervisor sets stands in one of these files as a key of the child's environment."""
    child = (PACKAGE / "agent" / "supervisor" / "child.py").read_text(encoding="utf-8")
    bandwidth = (PACKAGE / "agent" / "network" / "bandwidth.py").read_text(encoding="utf-8")
    modules = {mailbox.VARIABLE, stacks.VARIABLE, usage.SHAPED}
    for name, entry in CONTRACT["variables"].items():
        if entry["set_by"] == "image":
            sets = name in child or name in bandwidth or name in modules
            assert sets, f"{name}: who sets it?"


def test_the_variable_with_what_a_swarm_gives_is_the_one_that_is_read():
    assert f"`{promise.GIVEN}`" in CONTRACT["variables"]["CLUSTER_KIT_GPUS"]["meaning"]


def test_the_debuggers_port_is_the_one_that_the_host_publishes():
    assert CONTRACT["ports"]["debugger"] == debugged.PORT
    assert debugged.WHERE in CONTRACT["variables"]["CLUSTER_KIT_DEBUG"]["meaning"]


def test_the_commands_are_those_of_the_usage():
    assert " | ".join(CONTRACT["commands"]) == command.USAGE.partition("-m trainer ")[2]


def test_every_path_is_meant_by_the_code():
    assert {path for path in CONTRACT["paths"] if f'"{path}"' in CODE or f"{path};" in CODE
            or f"under {path}" in CODE or path == "/tmp"} == set(CONTRACT["paths"])  # fmt: skip


def test_every_exit_code_is_in_the_contract():
    codes = {name: value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert {name: entry["code"] for name, entry in CONTRACT["exit_codes"].items()} == codes


def test_every_reason_is_in_the_contract_with_its_exit_code():
    reasons = {value for name, value in vars(outcome).items()
               if name.isupper() and isinstance(value, str)}  # fmt: skip
    assert set(CONTRACT["reasons"]) == reasons
    fixed = {name: entry["exit_code"] for name, entry in CONTRACT["reasons"].items()
             if "exit_code" in entry}  # fmt: skip
    assert fixed == outcome.EXIT_CODES


@pytest.mark.parametrize("name", [n for n, entry in CONTRACT["times"].items() if "at" in entry])
def test_a_grace_time_is_the_constant(name):
    module, _, constant = CONTRACT["times"][name]["at"].partition(":")
    assert getattr(importlib.import_module(module), constant) == CONTRACT["times"][name]["seconds"]


def test_a_straggler_is_slower_by_the_factor():
    assert CONTRACT["factors"] == {"straggler": pace.FACTOR}


def test_who_is_stopped_has_time_before_docker_kills():
    times = {name: entry["seconds"] for name, entry in CONTRACT["times"].items()}
    assert times["program_save"] <= times["server_save"] < times["stop_grace"]


def test_the_beacons_lines_are_those_of_the_contract():
    said = [Hello("TASK", "RUN"), Done("TASK"), Failed("TASK", "MESSAGE"),
            Report("REASON", "TASK", "MESSAGE"), Beat(Usage(0.5, 7)), Stopping(), Stacks(),
            Beat(), End(7)]  # fmt: skip
    text = "".join(encode(message).decode() for message in said)
    words = {"end 7": "end EXIT_CODE", " ".join(Usage(0.5, 7).words()): " ".join(USAGE)}
    for value, name in words.items():
        text = text.replace(value, name)
    shake = ["challenge NONCE", "answer NONCE PROOF", "answer PROOF"]
    assert [*shake, *text.splitlines()] == list(CONTRACT["beacon"])
    document = handshake.__doc__ or ""
    assert [line.split("    ")[-1] for line in document.splitlines() if " to " in line] == shake


def written() -> Iterator[tuple[str, set[str]]]:
    """(event, its literal keys) of each place that writes one."""
    for file in FILES:
        if ".write(" not in file.read_text(encoding="utf-8"):
            continue
        for node in nodes_of(file):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            name = node.args[0] if node.args else None
            says = node.func.attr == "write" and ast.unparse(node.func).endswith("progress.write")
            if says and isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value, {key.arg for key in node.keywords if key.arg}


def test_every_event_is_in_the_contract_with_its_keys():
    found: dict[str, set[str]] = defaultdict(set)
    for event, keys in written():
        found[event] |= keys
    assert set(found) == set(CONTRACT["events"]), (
        "devices is also written by injected/gpus/devices.py"
    )
    for event, keys in found.items():
        if not CONTRACT["events"][event].get("open"):
            assert keys <= set(CONTRACT["events"][event]["keys"]), event


def test_an_end_has_every_key_of_the_contract(tmp_path):
    import json

    from trainer.agent.events import Progress

    file = tmp_path / "progress.jsonl"
    outcome.stopped().record(Progress(file))
    line = json.loads(file.read_text())
    keys = set(CONTRACT["events"]["end"]["keys"])
    assert set(line) - {"time", "event"} in (keys, keys - {"rx_bytes", "tx_bytes"})


def test_a_programs_devices_event_has_the_contracts_keys():
    text = (PACKAGE / "agent" / "injected" / "gpus" / "devices.py").read_text(encoding="utf-8")
    keys = set(re.findall(r'"(\w+)": ', text)) & {"of", "promised", "sees", "broken"}
    assert keys == set(CONTRACT["events"]["devices"]["keys"])
