"""The contents of the image: its packages and their licences, as a table and as CycloneDX."""

from __future__ import annotations

import json
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cluster_kit.cli import provision
from cluster_kit.errors import EngineError
from cluster_kit.image.sbom import Package, packages_of
from cluster_kit.util.process import Completed
from tests.fakes.hosts import Machine
from tests.unit.command_line import Cli
from tests.unit.image.test_build import build_time_script

TAG = "cluster-kit/trainer:cpu-0123456789ab"
PACKAGES = [
    Package("python", "python", "3.11.2", "PSF-2.0"),
    Package("pypi", "absl-py", "2.5.1", "Apache-2.0"),
    Package("pypi", "odd", "1", "a licence of their own"),
    Package("pypi", "silent", "2", ""),
    Package("deb", "libc6", "2.36-9+deb12u9", "LGPL-2.1+ AND GPL-2", "debian"),
]
LISTED = "".join(json.dumps(vars(package)) + "\n" for package in PACKAGES)


@pytest.fixture
def asked(machine: Machine) -> list[tuple[str, ...]]:
    """Records the commands that were run; a container of the image answers."""
    commands: list[tuple[str, ...]] = []

    def run(command: tuple[str, ...], **_: object) -> Completed:
        commands.append(command)
        return Completed(command, 0, LISTED, "")

    machine.starts(run=run)
    return commands


def test_the_query_runs_in_a_container_without_a_network(
    asked: list[tuple[str, ...]], machine: Machine
) -> None:
    assert packages_of(machine.host, TAG) == PACKAGES
    assert asked[0][-2:] == (TAG, "/opt/trainer/list_packages.py")
    assert "--network=none" in asked[0] and "--cap-drop=ALL" in asked[0]


def test_an_image_that_does_not_answer_is_an_error(machine: Machine) -> None:
    machine.starts(run=lambda command: Completed(command, 125, "", "no such"))
    with pytest.raises(EngineError, match="cannot be listed"):
        packages_of(machine.host, TAG)


def test_the_bill_of_materials_is_valid_and_has_every_package() -> None:
    # Each process of pytest reads this file, but only one of them makes a bill of materials.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    from cluster_kit.image.sbom import sbom

    text = sbom(TAG, PACKAGES)
    assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(text) is None
    found: dict[str, Any] = json.loads(text)
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    assert found["metadata"]["component"]["name"] == "cluster-kit/trainer"
    by_name = {component["name"]: component for component in found["components"]}
    assert by_name.keys() == {package.name for package in PACKAGES}
    assert by_name["absl-py"]["purl"] == "pkg:pypi/absl-py@2.5.1"
    assert by_name["absl-py"]["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    assert by_name["odd"]["licenses"] == [{"license": {"name": "a licence of their own"}}]
    assert "licenses" not in by_name["silent"]
    assert by_name["libc6"]["purl"].startswith("pkg:deb/debian/libc6@2.36-9")


def test_the_verb_prints_both_forms(
    cli: Cli, asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provision, "image_present", lambda *_: True)
    assert json.loads(cli("image", "sbom").out)["bomFormat"] == "CycloneDX"
    table = cli("image", "sbom", "--licences").out.splitlines()
    assert len(table) == 1 + len(PACKAGES)
    assert table[2].split() == ["pypi", "absl-py", "2.5.1", "Apache-2.0"]
    assert table[4].split()[-2:] == ["not", "stated"]
    monkeypatch.setattr(provision, "image_present", lambda *_: False)
    result = cli("image", "sbom", "--variant", "gpu")
    assert result.code == 3 and "cluster-kit image build --variant gpu" in result.err


def metadata(**fields: Any) -> Message:
    made = Message()
    for name, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            made[name.replace("_", "-")] = one
    return made


APACHE = "License :: OSI Approved :: Apache Software License"


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ({"License_Expression": "MIT", "License": "old"}, "MIT"),
        ({"License": "BSD-3-Clause", "Classifier": [APACHE]}, "BSD-3-Clause"),
        ({"License": "Copyright\nAll of it", "Classifier": [APACHE, "Topic :: X"]},
         "Apache Software License"),
        ({"License": "MIT License\n\nPermission is"}, "MIT License"),
        ({"License": "UNKNOWN"}, "UNKNOWN"),
        ({}, ""),
    ],
)  # fmt: skip
def test_the_licence_of_a_python_package(fields: dict[str, Any], licence: str) -> None:
    assert build_time_script("list_packages").licence_of(metadata(**fields)) == licence


def test_without_metadata_the_licence_file_is_used(tmp_path: Path) -> None:
    file = tmp_path / "LICENSE"
    file.write_text("Copyright 2023 somebody\n\nLicensed under the Apache License, Version 2.0\n")
    script = build_time_script("list_packages")

    def licence(*names: str) -> Any:
        files = [SimpleNamespace(name=name, locate=lambda: file) for name in names]
        return script.by_its_file(SimpleNamespace(files=files))

    assert licence("a.py", "LICENSE") == "Apache License"
    assert licence("a.py") == licence() == ""
    file.write_text("Do what you like\nwith it\n")
    assert licence("COPYING.txt") == "Do what you like"


STATUS = """Package: libone
Status: install ok installed
Version: 1.0-2
Source: one (1.0)
Description: a
 Version: not this

Package: libone-data
Status: install ok installed
Source: one
Version: 1.0-2

Package: gone
Status: deinstall ok config-files
Version: 3

Package: old
Status: install ok installed
Version: 4

Package: bare
Status: install ok installed
Version: 5
"""


MACHINE_READABLE = """Files: *
License: MIT
 the text
Files: x
License: BSD-3-clause or X
License: MIT
License: Redistribution and use in source and binary forms, with or without modification
"""


def test_debians_packages_have_the_licences_of_their_copyright_files(tmp_path: Path) -> None:
    texts = {
        "libone": MACHINE_READABLE,
        "old": "see /usr/share/common-licenses/GPL-2. And /usr/share/common-licenses/LGPL.\n",
        "bare": "as you like\n",
    }
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "copyright").write_text(text)
    found = list(build_time_script("list_packages").debian(STATUS, tmp_path))
    assert found == [
        ("libone", "1.0-2", "MIT AND (BSD-3-clause or X)"),
        ("libone-data", "1.0-2", "MIT AND (BSD-3-clause or X)"),
        ("old", "4", f"GPL-2 AND LGPL, see {tmp_path}/old/copyright"),
        ("bare", "5", f"see {tmp_path}/bare/copyright"),
    ]


def test_only_copyright_files_stay_of_the_documentation(tmp_path: Path) -> None:
    for name in ("a/copyright", "a/changelog.gz", "b/README", "c/deep/notes"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "d").symlink_to("a")
    build_time_script("slim").keep_licences(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "a", "a/copyright", "d",
    ]  # fmt: skip
