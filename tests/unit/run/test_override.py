"""A user's own file next to the compose file: merged, never written, and refused if it breaks
something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster_kit.errors import UsageError
from cluster_kit.platforms.compose.compose_platform import NAMES, find_override
from tests.fakes.stage import NAME, Stage


def own(stage: Stage, text: str, name: str = "compose.override.yaml") -> Path:
    file = stage.workspace.manifests / NAME / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def merged(stage: Stage, text: str) -> str:
    """Returns the error about a refused file, after checking that nothing is left of the run."""
    file = own(stage, text)
    with pytest.raises(UsageError) as told:
        stage.up()
    assert str(file) in told.value.message
    assert file.read_text() == text
    assert stage.is_clean()
    return told.value.message


def test_a_generated_file_that_was_edited_is_kept(stage: Stage) -> None:
    assert stage.up().success and stage.up().success
    assert not any("edited" in text for text in stage.view.warnings)
    file = stage.workspace.manifests / NAME / "compose.yaml"
    written = file.read_text()
    edited = written + "x-mine: 1\n"
    file.write_text(edited)
    assert stage.up().success
    assert any("it is compose.yaml.edited now" in text for text in stage.view.warnings)
    assert (file.read_text(), file.with_name("compose.yaml.edited").read_text()) == (
        written,
        edited,
    )


def test_its_additions_reach_the_containers_and_the_file_is_unchanged(stage: Stage) -> None:
    text = (
        "services: {chief-0: {environment: {MORE: 'yes', MY_TOKEN: hush-hush}, dns: [10.0.0.2]}}\n"
    )
    file = own(stage, text)
    seen: list[Any] = []
    stage.docker.on_call = lambda name: seen.extend(
        box.service for box in stage.engine.boxes.values() if name == f"start {box.task}"
    )
    assert stage.up().success
    (chief,) = [service for service in seen if service["hostname"] == "chief-0"]
    assert (chief["environment"]["MORE"], chief["dns"]) == ("yes", ["10.0.0.2"])
    assert file.read_text() == text
    assert f"merging {file}" in stage.view.phases
    assert stage.directory.override.read_text() == text.replace("hush-hush", "***")
    file.unlink()
    assert stage.up(resume=True).success and not stage.directory.override.exists()


def test_a_variable_in_it_that_is_not_set_is_told_in_the_words_of_compose(stage: Stage) -> None:
    file = own(stage, "services: {chief-0: {environment: {MORE: 'x${MY_UNSET}'}}}\n")
    assert stage.up().success
    told = 'The "MY_UNSET" variable is not set. Defaulting to a blank string.'
    assert f"{file}: {told}" in stage.view.warnings


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{labels: {cluster-kit.role: ps}}", "chief-0: its labels"),
        ("{networks: {cluster: {ipv4_address: 10.9.9.9}}}", "chief-0: its address"),
        ("{environment: {TF_CONFIG: '{}'}}", "chief-0: its variables"),
        ("{environment: {CLUSTER_KIT_NEW: '1'}}", "chief-0: its variables"),
        ("{container_name: mine}", "chief-0: its container_name"),
        ("{user: '405'}", "chief-0: its user"),
        ("{hostname: mine}", "chief-0: its hostname"),
        ("{command: [sleep]}", "chief-0: its command"),
        ("{entrypoint: [sleep]}", "chief-0: its entrypoint"),
        ("{network_mode: host}", "chief-0: its network_mode"),
        ("{volumes: [{source: /x, target: /output}]}", "chief-0: its output directory"),
    ],
)
def test_changes_of_what_a_task_needs_are_refused(stage: Stage, text: str, told: str) -> None:
    assert told in merged(stage, f"services: {{chief-0: {text}}}\n")


def test_all_its_problems_are_reported_together(stage: Stage) -> None:
    text = "services: {chief-0: {hostname: a}, ps-0: {hostname: b}, web: {image: x}}\nname: mine\n"
    lines = merged(stage, text).splitlines()[1:]
    assert [line.strip().partition(":")[0] for line in lines] == [
        "the project's name",
        "chief-0",
        "ps-0",
        "web",
    ]
    assert lines[-1] == "  web: a service of its own: write it into the manifest, as [sidecar.web]"
    network = "networks: {cluster: {ipam: {config: [{subnet: 10.9.0.0/16}]}}}\n"
    assert "the network: its subnet" in merged(stage, network)


def test_a_file_that_is_not_yaml_is_reported_with_composes_message(stage: Stage) -> None:
    assert "yaml:" in merged(stage, "services: [")


def test_the_first_of_its_possible_names_is_used(tmp_path: Path) -> None:
    assert find_override(tmp_path / "compose.yaml") is None
    for name in reversed(NAMES):
        (tmp_path / name).touch()
        assert find_override(tmp_path / "compose.yaml") == tmp_path / name
