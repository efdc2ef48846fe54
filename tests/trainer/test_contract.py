"""Facts of the contract about the image's code that the contract cannot import: variables,
commands, events."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

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
    Permanent,
    Report,
    Stacks,
    Stopping,
    encode,
)
from trainer.agent.injected import gpu_promises, mailbox, runner, stacks
from trainer.agent.injected.debugger import debugged
from trainer.agent.usage import Usage
from trainer.contract import endings, events, interface, times

PACKAGE = Path(errors.__file__).parents[1]
FILES = sorted(file for file in PACKAGE.rglob("*.py") if file.parent.name != "contract")
USAGE = ["CPU_SECONDS", "RECEIVED", "SENT", "THROTTLED_SECONDS", "FAULTS", "MEMORY_SECONDS", "CPUS",
         "BANDWIDTH"]  # fmt: skip
CODE = "\n".join(file.read_text(encoding="utf-8") for file in FILES)


def test_every_variable_is_in_the_contract_and_in_the_code():
    used = set(re.findall(r"\bCLUSTER_KIT_[A-Z_]+|\bTF_CONFIG\b", CODE))
    assert used == set(interface.VARIABLES)


def test_the_host_sets_the_variables_that_the_image_reads():
    """A variable that the supervisor sets is in one of these files as a key of the child's
    environment."""
    child = (PACKAGE / "agent" / "supervisor" / "child.py").read_text(encoding="utf-8")
    bandwidth = (PACKAGE / "agent" / "network" / "bandwidth.py").read_text(encoding="utf-8")
    modules = {mailbox.VARIABLE, stacks.VARIABLE, usage.SHAPED}
    for name, variable in interface.VARIABLES.items():
        if variable.of_image:
            sets = name in child or name in bandwidth or name in modules
            assert sets, f"{name}: who sets it?"


def test_the_variable_with_a_swarms_gpus_is_the_one_that_is_read():
    assert f"`{gpu_promises.GIVEN}`" in interface.VARIABLES["CLUSTER_KIT_GPUS"].meaning


def test_debugpy_is_at_the_path_of_the_contract():
    assert debugged.WHERE in interface.VARIABLES["CLUSTER_KIT_DEBUG"].meaning


def test_the_commands_equal_those_of_the_usage():
    usage = command.USAGE.splitlines()[0]
    assert " | ".join(interface.COMMANDS) == usage.partition("-m trainer ")[2]


def test_every_path_is_used_by_the_code():
    assert {path for path in interface.PATHS if f'"{path}"' in CODE or f"{path};" in CODE
            or f"under {path}" in CODE or path == "/tmp"} == set(interface.PATHS)  # fmt: skip


def test_code_in_a_programs_process_has_the_contracts_numbers():
    """That code imports nothing of the package: its copies are compared here."""
    assert debugged.PORT == times.DEBUGGER_PORT
    assert runner.EXIT_STDOUT_LOST == endings.EXIT_STDOUT_LOST


def test_a_stopped_task_ends_before_docker_kills_it():
    assert times.PROGRAM_SAVE_S <= times.SERVER_SAVE_S < times.STOP_GRACE_S


def test_the_beacons_lines_equal_those_of_the_contract():
    messages = [Hello("TASK", "RUN"), Done("TASK"), Failed("TASK", "MESSAGE"),
            Permanent("TASK", 3, "MESSAGE"), Report("REASON", "TASK", "MESSAGE"),
            Beat(Usage(0.5, 7)), Stopping(), Stacks(), Beat(), End(7)]  # fmt: skip
    text = "".join(encode(message).decode() for message in messages)
    words = {"end 7": "end EXIT_CODE", "TASK 3": "TASK EXIT_CODE"}
    words[" ".join(Usage(0.5, 7).words())] = " ".join(USAGE)
    for value, name in words.items():
        text = text.replace(value, name)
    shake = ["challenge NONCE", "answer NONCE PROOF", "answer PROOF"]
    assert [*shake, *text.splitlines()] == list(interface.BEACON)
    document = handshake.__doc__ or ""
    assert [line.split("    ")[-1] for line in document.splitlines() if " to " in line] == shake


def written() -> Iterator[tuple[str, set[str]]]:
    """Returns (event, its literal keys) of each place that writes an event."""
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
    assert set(found) == set(events.EVENTS), "devices: also written by tensorflow_devices.py"
    for event, keys in found.items():
        if not events.EVENTS[event].open:
            assert keys <= set(events.KINDS[events.EVENTS[event]]), event


def test_an_end_has_every_key_of_the_contract(tmp_path):
    import json

    from trainer.agent.progress_file import Progress

    file = tmp_path / "progress.jsonl"
    outcome.stopped().record(Progress(file))
    line = json.loads(file.read_text())
    keys = set(events.KINDS[events.End])
    assert set(line) - {"time", "event"} in (keys, keys - {"rx_bytes", "tx_bytes"})


def test_a_programs_devices_event_has_the_contracts_keys():
    text = (PACKAGE / "agent" / "injected" / "tensorflow_devices.py").read_text(encoding="utf-8")
    keys = set(re.findall(r'"(\w+)": ', text)) & {"of", "promised", "sees", "broken"}
    assert keys == set(events.KINDS[events.Devices])
