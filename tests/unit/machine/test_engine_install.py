"""Remains of an engine that was killed do not prevent the next one from starting."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from cluster_kit.errors import HostError
from cluster_kit.machine import engine_install
from cluster_kit.machine.engine_install import forget_dead_daemon
from cluster_kit.util.process import TIMED_OUT, Completed
from tests.fakes.hosts import Machine


@pytest.mark.parametrize("left", ["mine", "999999999", "", "x"])
def test_a_stale_pid_file_is_removed(tmp_path: Path, left: str) -> None:
    pid_file = tmp_path / "docker.pid"
    pid_file.write_text(str(os.getpid()) if left == "mine" else left)
    forget_dead_daemon(pid_file)
    assert not pid_file.exists()


def test_a_missing_pid_file_is_no_error(tmp_path: Path) -> None:
    forget_dead_daemon(tmp_path / "docker.pid")


def test_a_user_without_access_to_the_engine_is_not_offered_another_one(
    monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    words = "permission denied while trying to connect to the Docker daemon socket"
    monkeypatch.setattr(engine_install.shutil, "which", lambda name: f"/usr/bin/{name}")
    machine.starts(run=lambda c, **_: Completed(tuple(c), 1, "", words))
    with pytest.raises(HostError, match="this user has no access to the Docker engine") as told:
        engine_install.ensure_engine(
            machine.host, lambda _: None, lambda _: pytest.fail("it was offered")
        )
    assert "usermod -aG docker $USER" in told.value.hint


def test_an_engine_that_hangs_is_said_to_hang_and_no_other_is_offered(
    monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    monkeypatch.setattr(engine_install.shutil, "which", lambda name: f"/usr/bin/{name}")
    late = "docker did not end within 30 s"
    machine.starts(run=lambda c, **_: Completed(tuple(c), TIMED_OUT, "", late))
    with pytest.raises(HostError, match="`docker info` did not end within 30 s") as told:
        engine_install.ensure_engine(
            machine.host, lambda _: None, lambda _: pytest.fail("it was offered")
        )
    assert "restart docker" in told.value.hint


DEB822 = """# comment
Types: deb
URIs: {mirror}
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: {security}
Suites: bookworm-security
Components: main
"""
ONE_LINE = """deb [arch=amd64] {mirror} bookworm main
# deb {mirror}-other bookworm main
deb {security} bookworm-security main
"""


@pytest.mark.parametrize(
    ("file", "text"),
    [("sources.list.d/debian.sources", DEB822), ("sources.list", ONE_LINE),
     ("sources.list.d/x.list", ONE_LINE)],
)  # fmt: skip
@pytest.mark.parametrize("security", ["http://fixes.example/debian-security", ""])
def test_the_next_suite_uses_the_hosts_own_mirrors_with_security_updates(
    tmp_path: Path, file: str, text: str, security: str
) -> None:
    (tmp_path / "sources.list.d").mkdir()
    mirror = "https://mirror.example/debian"
    (tmp_path / file).write_text(text.format(mirror=mirror, security=security or mirror))
    assert engine_install.debian_mirrors(tmp_path) == (mirror, security)
    written = engine_install.next_suite(mirror, security)
    assert f"URIs: {mirror}\nSuites: trixie\n" in written
    assert ("Suites: trixie-security\n" in written) == bool(security)
    assert written.count("Signed-By: ") == written.count("Types: deb\n") == 1 + bool(security)


@pytest.mark.parametrize("no", ["no", "No", "false"])
def test_a_disabled_source_is_no_mirror(tmp_path: Path, no: str) -> None:
    (tmp_path / "sources.list.d").mkdir()
    old, mirror = "http://old.example/debian", "https://mirror.example/debian"
    disabled = f"Types: deb\nEnabled: {no}\nURIs: {old}\nSuites: bookworm\nComponents: main\n"
    text = f"{disabled}\n{DEB822.format(mirror=mirror, security=mirror)}"
    (tmp_path / "sources.list.d" / "debian.sources").write_text(text)
    assert engine_install.debian_mirrors(tmp_path) == (mirror, "")


def test_only_the_docker_packages_come_from_both_suites() -> None:
    others, docker = engine_install.PINNED.strip().split("\n\n")
    assert others.splitlines()[1:] == ["Pin: release n=trixie*", "Pin-Priority: 50"]
    assert docker.splitlines()[1:] == ["Pin: release n=trixie*", "Pin-Priority: 990"]


def test_a_host_without_a_mirror_gets_an_error(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="no Debian mirror"):
        engine_install.debian_mirrors(tmp_path)


@pytest.mark.parametrize("has_fixes", [True, False])
def test_a_mirror_without_security_updates_does_not_stop_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_fixes: bool, machine: Machine
) -> None:
    (tmp_path / "sources.list").write_text(
        ONE_LINE.format(
            mirror="http://m.example/debian", security="http://s.example/debian-security"
        )
    )
    sources, asked, output = tmp_path / "sources", list[str](), list[str]()
    monkeypatch.setattr(engine_install, "APT", tmp_path)
    monkeypatch.setattr(engine_install, "SOURCES", sources)
    monkeypatch.setattr(engine_install, "PINS", tmp_path / "pins")
    release = {"VERSION_CODENAME": "bookworm", "ID": "debian"}
    monkeypatch.setattr(engine_install, "_os_release", lambda: release)

    def run(command: list[str], **_: object) -> Completed:
        asked.append(command[3])
        fails = command[3] == "update" and "-security" in sources.read_text() and not has_fixes
        return Completed(tuple(command), 100 if fails else 0, "", "no Release file")

    machine.starts(run=run)
    engine_install._update(machine.host, output.append)
    assert asked == (["update"] if has_fixes else ["update", "update"])
    assert ("trixie-security" in sources.read_text()) == has_fixes
    assert bool(output) != has_fixes


class MadeBeside:
    """Ends only when the engine's packages are being installed: these must not wait for it."""

    packages = ("maker",)

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted
        self.made = False
        self.goes_on = threading.Event()

    def is_wanted(self) -> bool:
        return self.wanted

    def make(self) -> None:
        self.made = self.goes_on.wait(10)


@pytest.mark.parametrize(("is_wanted", "has_maker"), [(True, True), (True, False), (False, True)])
def test_something_is_made_beside_the_installation_and_ready_after_it(
    monkeypatch: pytest.MonkeyPatch, machine: Machine, is_wanted: bool, has_maker: bool
) -> None:
    beside, commands = MadeBeside(is_wanted), list[tuple[str, ...]]()

    def run(command: Sequence[str], **_: object) -> Completed:
        commands.append(tuple(command))
        if "docker.io" in command:
            beside.goes_on.set()
        fails = command[-1] == "maker" and not has_maker
        return Completed(tuple(command), int(fails), "26.1", "")

    monkeypatch.setattr(engine_install.shutil, "which", lambda _: None)
    monkeypatch.setattr(engine_install, "_refuse_if_not_allowed", lambda: None)
    monkeypatch.setattr(engine_install, "_os_release", lambda: {"ID": "debian"})
    monkeypatch.setattr(engine_install, "_start", lambda _: None)
    monkeypatch.setattr(engine_install.sys.stdin, "isatty", lambda: False)
    machine.starts(run=run)
    assert engine_install.ensure_engine(machine.host, print, lambda _: True, beside)
    assert beside.made == (is_wanted and has_maker)
    installed = [command[-1] for command in commands if "install" in command]
    assert installed == (["maker", "iptables"] if is_wanted else ["iptables"])


@pytest.mark.parametrize(("version", "note"), [("26.1.5", True), ("28.0.1", False)])
def test_it_prints_which_engine_this_host_has(machine: Machine, version: str, note: bool) -> None:
    ended = Completed(("docker",), 0, f"{version}\n", "")
    machine.starts(run=lambda *_, **__: ended)
    output = engine_install._given(machine.host)
    assert output.startswith(f"Docker Engine {version}") and ("doctor" in output) == note
