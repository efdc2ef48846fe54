"""`render --check`: which source has changed since the file was rendered."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_kit.platforms.rendered_file import with_content
from cluster_kit.version import __version__
from tests.fakes.hosts import Machine
from tests.make import gpus, host
from tests.unit.cli.rendering import ELSEWHERE, PORTABLE, manifest, mine, on, stale
from tests.unit.command_line import Cli

__all__ = ["mine"]


def test_check_says_whether_manifest_kit_or_host_has_changed(
    cli: Cli, mine: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    before = (mine / "compose/demo.toml").read_text()
    cli("render", "demo")
    (mine / "compose/demo.toml").write_text(before + "# a remark\n")
    assert cli("render", "demo", "--check").code == 0, "a comment changes nothing"
    (mine / "compose/demo.toml").write_text(before + "worker = 40\n")
    assert stale(cli) == "the manifest has changed"
    (mine / "compose/demo.toml").write_text(before)
    assert stale(cli, "--ps", "4") == "it was written with other options"
    usual = host()
    on(monkeypatch, replace(usual, user="7:7"))
    assert stale(cli) == "the host (user) has changed"
    on(monkeypatch, replace(usual, networks=ELSEWHERE.networks, user="7:7"))
    assert stale(cli) == "the host (user, subnet) has changed"
    on(monkeypatch, usual)
    machine.host = replace(
        machine.host, image_tag=lambda variant: f"cluster-kit/trainer:{variant}-9"
    )
    assert stale(cli) == "the kit has changed"
    (mine / "compose/demo.toml").write_text(before + "port = 4000\n")
    assert stale(cli) == "the manifest and the kit have changed"
    monkeypatch.undo()


def test_check_recognizes_an_edited_file_and_one_of_an_older_kit(cli: Cli, root: Path) -> None:
    cli("render", "demo", "--portable")
    assert cli("render", "demo", "--portable", "--check").code == 0
    text = (root / PORTABLE).read_text()
    (root / PORTABLE).write_text(text.replace("init: true", "init: false"))
    assert stale(cli, "--portable") == "the file itself was edited"
    both = "it was written with other options and the file itself was edited"
    assert stale(cli, "--portable", "--ps", "4") == both
    (root / PORTABLE).write_text(text.replace("# made of", "# of"))
    assert stale(cli, "--portable") == "the kit has changed"
    (root / PORTABLE).write_text(re.sub("# content .*\n", "", text))
    assert stale(cli, "--portable") == "the kit has changed"
    older = text.replace(f"cluster-kit {__version__} wrote", "cluster-kit 0.0.9 wrote")
    (root / PORTABLE).write_text(re.sub("made of: manifest ........", "made of: manifest 0", older))
    assert stale(cli, "--portable") == "the kit has changed"


def test_a_file_of_up_with_debug_was_not_edited(cli: Cli, root: Path) -> None:
    """`--debug` is no key of the manifest, and not in the command of the file's header."""
    cli("render", "demo")
    file = root / "compose/demo/compose.yaml"
    file.write_text(with_content(re.sub("# content .*\n", "", file.read_text()) + "x-debug: 1\n"))
    assert stale(cli) == "it was written with other options"


def test_an_edited_file_is_kept_when_it_is_rendered_again(cli: Cli, root: Path) -> None:
    for options, file in (((), "compose/demo/compose.yaml"), (("--portable",), PORTABLE)):
        path = root / file
        cli("render", "demo", *options)
        assert "edited" not in cli("render", "demo", *options).err
        text = path.read_text()
        for number in ("", "1"):
            path.write_text(mine := text + f"# mine\nx-mine{number}: 1\n")
            kept = path.with_name(f"compose.yaml.edited{number}")
            result = cli("render", "demo", *options)
            assert f"had been edited by hand: it is {file}.edited{number} now" in result.err
            assert (path.read_text(), kept.read_text()) == (text, mine)
        path.write_text(mine := text + "x-mine: 1\n")
        assert "edited by hand" in cli("render", "demo", *options, "--ps", "4").err, "another plan"
        assert path.with_name("compose.yaml.edited2").read_text() == mine
        path.write_text(path.read_text().replace("# plan", "# my plan"))
        assert "edited" not in cli("render", "demo", *options).err, "a comment"
        older = re.sub("# content .*\n", "", text) + "x-mine: 1\n"
        path.write_text(older)
        assert "edited" not in cli("render", "demo", *options, "--ps", "4").err, "an older kit's"
        cli("render", "demo", *options)
        path.write_text(older)
        assert "edited by hand" in cli("render", "demo", *options).err
    ignored = (root / "compose/demo/.gitignore").read_text().splitlines()
    assert ignored.count("*.edited*") == 1


def test_gpus_in_use_by_others_are_a_change_of_the_host(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest(root, 'gpus = "auto"\n')
    facts = host(gpus=gpus(4))
    on(monkeypatch, facts)
    cli("render", "demo")
    on(monkeypatch, replace(facts, gpus_taken=(("0", "other"),)))
    assert stale(cli) == "the host (gpus) has changed"


def test_a_file_that_cannot_be_written_is_reported(cli: Cli, root: Path) -> None:
    (root / "compose" / "demo").write_text("not a folder")
    result = cli("render", "demo")
    assert result.code == 3 and "demo/compose.yaml cannot be written" in result.err, result.err
