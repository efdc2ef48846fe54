"""Which other users and machines can reach the tasks' servers, as far as `doctor` can know."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.facts import EngineKind
from cluster_kit.platforms.platform import Check
from cluster_kit.run.doctor import check_strangers
from cluster_kit.util.process import Completed
from tests.fakes.hosts import Machine
from tests.make import host

PEOPLE = """root:x:0:0:root:/root:/bin/bash
daemon:x:1:1::/usr/sbin:/usr/sbin/nologin
me:x:1000:1000::/home/me:/bin/bash
ada:x:1001:1001:,,,:/home/ada:/bin/zsh
backup:x:1002:1002::/home/backup:/bin/false
nobody:x:65534:65534::/:/bin/bash
a broken line
"""


def found(
    machine: Machine, users: Path, engine: str = "28.1.0", forward: str = "DROP"
) -> dict[str, Check]:
    output = Completed(("iptables",), 0 if forward else 4, f"-P FORWARD {forward}\n-A x\n", "")
    machine.starts(run=lambda *_, **__: output)
    return {
        check.name: check
        for check in check_strangers(machine.host, host(engine=engine), users, {1000})
    }


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "passwd"
    file.write_text(PEOPLE)
    return file


def test_other_users_are_named(machine: Machine, users: Path) -> None:
    check = found(machine, users)["users"]
    assert check.state == "warn" and check.found.startswith("ada can log in")
    users.write_text(PEOPLE.replace("/bin/zsh", "/usr/sbin/nologin"))
    assert found(machine, users)["users"].state == "ok"
    users.unlink()
    assert found(machine, users)["users"].state == "warn"


@pytest.mark.parametrize(
    ("engine", "state"),
    [("26.1.5+dfsg1", "warn"), ("27.9", "warn"), ("28.0.0", "ok"), ("100.1", "ok"), ("", "warn")],
)
def test_an_engine_older_than_28_is_reported(
    machine: Machine, users: Path, engine: str, state: str
) -> None:
    assert found(machine, users, engine)["isolation"].state == state


@pytest.mark.parametrize(
    ("forward", "state", "words"),
    [("DROP", "ok", "drops"), ("ACCEPT", "warn", "is ACCEPT"), ("", "warn", "unknown")],
)
def test_the_firewalls_policy_is_reported_and_never_guessed(
    machine: Machine, users: Path, forward: str, state: str, words: str
) -> None:
    check = found(machine, users, forward=forward)["forward"]
    assert (check.state, words in check.found) == (state, True)


def test_nothing_is_reported_about_an_engine_elsewhere(users: Path, machine: Machine) -> None:
    for kind in (EngineKind(remote="ssh://x"), EngineKind(desktop=True), EngineKind(podman=True)):
        assert list(check_strangers(machine.host, host(kind=kind), users)) == []
