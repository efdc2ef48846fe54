"""`image push` copies only what is missing, to each target; failed targets are named with a
hint."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from cluster_kit.errors import EngineError, UsageError
from cluster_kit.image import push
from cluster_kit.util.process import CUT_OFF, Completed
from tests.fakes.hosts import Machine
from tests.unit.command_line import Cli

IMAGE = "cluster-kit/trainer:cpu-1"
OURS = 'sha256:1 1170000000 ["sha256:a","sha256:b"]'
NONE = "Error response from daemon: No such image: cluster-kit/trainer:cpu-1"


class Engines:
    """`docker` for several engines: what each reports about the image; "" is this host's engine."""

    def __init__(self, **images: str) -> None:
        self.images = {"": OURS, **images}
        self.loaded: list[str] = []
        self.refuses: dict[str, str] = {}
        self.saved = Completed((), 0, "", "")

    def run(self, command: Sequence[str], **_: object) -> Completed:
        name = command[2] if command[1] in ("-H", "--context") else ""
        output = self.images[name]
        found = output.startswith("sha256:")
        return Completed(tuple(command), int(not found), output * found, output * (not found))

    def pass_on(
        self, source: Sequence[str], sink: Sequence[str], each: Callable[[int], None]
    ) -> tuple[Completed, Completed]:
        assert source[1] == "save" and sink[-2:] == ["load", "--quiet"]
        each(600_000_000)
        if not self.saved.ok:
            return self.saved, Completed((), 1, "", "unexpected EOF")
        if why := self.refuses.get(sink[2]):
            return Completed((), CUT_OFF, "", ""), Completed((), 1, "", why)
        self.loaded.append(sink[2])
        self.images[sink[2]] = OURS
        return Completed((), 0, "", ""), Completed((), 0, "", "")


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> Engines:
    made = Engines(**{"ssh://me@a": NONE, "b": OURS, "c": 'sha256:9 1 ["sha256:a","sha256:b"]',
                      "old": 'sha256:0 1 ["sha256:z"]'})  # fmt: skip
    machine.starts(run=made.run)
    machine.starts(pass_on=made.pass_on)
    monkeypatch.setattr(push, "TELL_S", -1.0)
    return made


def test_only_targets_without_the_image_get_it(engines: Engines, machine: Machine) -> None:
    outputs: list[str] = []
    done = push.push(machine.host, IMAGE, ["ssh://me@a", "b", "c", "old", "b"], outputs.append)
    assert [one.state for one in done] == ["loaded", "present", "present", "loaded"]
    assert engines.loaded == ["ssh://me@a", "old"]
    assert "ssh://me@a: 600 MB of about 1170 MB" in outputs
    push.refuse_if_failed(done, IMAGE)


@pytest.mark.parametrize(
    ("target", "message", "hint"),
    [
        (
            "ssh://me@x",
            "error during connect: command [ssh] has exited with exit status 255",
            "ssh",
        ),
        ("tcp://x:2375", "Cannot connect to the Docker daemon at tcp://x:2375", "`docker -H tcp"),
        ("nowhere", 'context "nowhere": context not found', "docker context ls"),
        ("unix:///s", "permission denied while trying to connect to the Docker daemon", "group"),
    ],
)
def test_a_target_that_does_not_answer_is_named_and_the_others_continue(
    engines: Engines, target: str, message: str, hint: str, machine: Machine
) -> None:
    engines.images[target] = message
    done = push.push(machine.host, IMAGE, [target, "ssh://me@a"], lambda _line: None)
    with pytest.raises(EngineError, match="1 of 2 engines have") as raised:
        push.refuse_if_failed(done, IMAGE)
    assert engines.loaded == ["ssh://me@a"]
    assert f"{target}: {message}" in raised.value.message and hint in raised.value.hint


def test_a_failed_ssh_connection_is_reported_with_sshs_message(
    engines: Engines, machine: Machine
) -> None:
    engines.images["ssh://me@x"] = (
        'error during connect: Get "http://docker.example.com/json": command [ssh x] has exited '
        "with exit status 255: stderr=ssh: connect to host x port 22: Connection refused"
    )
    engines.images["gone"] = 'context "gone": context not found: open /a/b/meta.json: no such file'
    by_ssh, gone = push.push(machine.host, IMAGE, ["ssh://me@x", "gone"], lambda _line: None)
    assert by_ssh.message == "ssh: connect to host x port 22: Connection refused"
    assert "a key for ssh" in by_ssh.hint
    assert gone.message == 'context "gone": context not found'
    assert "docker context ls" in gone.hint


def test_a_full_disk_of_a_target_is_reported(engines: Engines, machine: Machine) -> None:
    engines.refuses["ssh://me@a"] = "Error processing tar file: no space left on device"
    (failed,) = push.push(machine.host, IMAGE, ["ssh://me@a"], lambda _line: None)
    assert failed.state == "failed" and "docker system prune" in failed.hint


def test_an_image_that_does_not_exist_here_cannot_be_copied(
    engines: Engines, machine: Machine
) -> None:
    engines.images[""] = NONE
    with pytest.raises(EngineError, match="is not here"):
        push.push(machine.host, IMAGE, ["b"], lambda _line: None)
    engines.images[""] = "Cannot connect to the Docker daemon"
    with pytest.raises(EngineError, match="this host's engine: Cannot connect") as raised:
        push.push(machine.host, IMAGE, ["b"], lambda _line: None)
    assert "`docker info` has to work on this host" in raised.value.hint


def test_an_image_that_cannot_be_saved_here_is_not_blamed_on_the_target(
    engines: Engines, machine: Machine
) -> None:
    engines.saved = Completed((), 1, "", "unexpected read: input/output error")
    (failed,) = push.push(machine.host, IMAGE, ["ssh://me@a"], lambda _line: None)
    assert failed.message.startswith("docker save ended here with exit code 1: unexpected read")
    assert "this host" in failed.hint


@pytest.mark.parametrize("target", ["http://a", "a b", "", "ssh://", "-x"])
def test_an_invalid_target_is_refused_at_once(target: str) -> None:
    with pytest.raises(UsageError, match="neither an engine nor a context"):
        push.check_targets([target])


def test_the_verb_passes_its_arguments(
    cli: Cli, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = cli("image", "push", "demo", "--to", "ssh://me@a", "--to", "b", "--json")
    assert told.code == 0
    assert [one["state"] for one in json.loads(told.out)] == ["loaded", "present"]
    engines.images["b"] = NONE
    engines.refuses["b"] = "broken"
    told = cli("image", "push", "demo", "--to", "b")
    assert told.code == 4 and "b: broken" in told.err
    engines.images[""] = NONE
    kits = cli("image", "push", "demo", "--to", "b").err
    assert "`cluster-kit image build demo` makes it" in kits
    own = cli("image", "push", "demo", "--to", "b", "--set", "image=mine:1").err
    assert "mine:1 is not here" in own and "`docker pull mine:1`" in own
    assert cli("image", "push", "demo").code == 2
    assert cli("image", "push", "demo", "--to", "http://b").code == 2
