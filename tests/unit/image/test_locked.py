"""Everything that the build installs has a hash, its base a digest; vulnerabilities are searched
for."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from cluster_kit.image import base_image, kit_image
from tests import audit, lock
from tests.fakes.hosts import Machine

RECIPE = kit_image.SOURCE / "recipe"
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)
LINE = re.compile(r"\S+==\S+( ; platform_machine [!=]= 'x86_64')?( --hash=sha256:[0-9a-f]{64})+")
ARM64 = {
    "cpu": {
        "tensorflow": "4b24aca16d527a3cf1c37f720c04c484c3d20f4d0fdfa98632ac8b9f3be6eb5c",
        "numpy": "0ab0a9c4ffb1a6d95ef519fe4247dba8eb6b18ad93999f76b7f657039acabd47",
        "grpcio": "9885436e83eab92dd0d476642baf08a17c55ef2b1db430adcba3e89bb6938a5d",
    },
    "digits": {"scikit-learn": "4298fcc01b3d8fa9768d36894e99cce0747b3b2dd73bfd80779e393769d0afab"},
}
"""SHA-256 hashes of wheels for CPython 3.11."""


def pins(path: Path) -> dict[str, str]:
    """Returns versions by name, including those of included files."""
    text = path.read_text()
    found = {name.lower(): version for name, version in PIN.findall(text)}
    for other in re.findall(r"^-r (\S+)", text, re.MULTILINE):
        found |= pins(path.parent / other)
    return found


@pytest.mark.parametrize("part", lock.LOCKED)
def test_every_requirement_is_locked_by_hashes(part: str) -> None:
    locked = RECIPE / f"locked-{part}.txt"
    assert pins(locked) == pins(RECIPE / f"requirements-{part}.txt"), "run `make lock`"
    text = re.sub(r" \\\n +", " ", locked.read_text())
    for line in text.splitlines():
        assert line.startswith("#") or LINE.fullmatch(line)


@pytest.mark.parametrize("part", ["cpu", "digits"])
@pytest.mark.parametrize(
    ("machine", "framework"), [("x86_64", "tensorflow-cpu"), ("aarch64", "tensorflow")]
)
def test_each_processor_has_one_tensorflow_and_everything_else_in_common(
    part: str, machine: str, framework: str
) -> None:
    environment = {"platform_machine": machine, "python_version": "3.11"}
    names = set()
    for line in re.sub(r" \\\n +", " ", (RECIPE / f"locked-{part}.txt").read_text()).splitlines():
        pin = line.partition(" --hash")[0].strip()
        if pin.startswith("#"):
            continue
        requirement = Requirement(pin)
        if requirement.marker is None or requirement.marker.evaluate(environment):
            names.add(requirement.name)
    every = {Requirement(pin).name for pin in re.findall(r"^\S+==\S+", text_of(part), re.M)}
    frameworks = {"tensorflow-cpu", "tensorflow"}
    assert names & frameworks == ({framework} if part == "cpu" else set())
    assert names - frameworks == every - frameworks


def test_the_wheels_for_arm64_are_among_the_hashes() -> None:
    for part, digests in ARM64.items():
        assert all(digest in text_of(part) for digest in digests.values())


def text_of(part: str) -> str:
    return (RECIPE / f"locked-{part}.txt").read_text()


def test_the_image_installs_only_by_scripts_that_demand_hashes() -> None:
    """`test_build` tests the scripts."""
    text = (RECIPE / "Dockerfile").read_text()
    assert re.findall(r"python /\w+/install\.py (\S+)", text) == [
        "/mnt/locked.txt",
        "/build/locked-digits.txt",
    ]
    assert re.findall(r"python3 /\w+/installers\.py \S+ (\S+)", text) == ["/build/locked-uv.txt"]
    assert not re.findall(r"\b(?:pip|uv) (?:pip )?install\b", text)


def test_the_base_is_pulled_by_its_digest() -> None:
    assert re.fullmatch(r"python:3\.11-slim@sha256:[0-9a-f]{64}", base_image.REGISTRY_BASE)
    for file in RECIPE.glob("Dockerfile*"):
        assert f"ARG BASE={base_image.REGISTRY_BASE}\n" in file.read_text(), file.name


def said(code: int, packages: Any = None, errors: str = "") -> Any:
    out = json.dumps({"dependencies": packages}) if packages is not None else ""
    return lambda *_, **__: subprocess.CompletedProcess([], code, out, errors)


def package(*ids: str) -> dict[str, Any]:
    found = [{"id": id_, "aliases": [], "fix_versions": ["2.1"]} for id_ in ids]
    return {"name": "keras", "version": "2.0", "vulns": found}


def test_a_vulnerability_fails_the_check_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.main(said(1, [package("PYSEC-1"), {"name": "x", "skip_reason": "?"}])) == 1
    assert "keras 2.0: PYSEC-1, mended in 2.1" in capsys.readouterr().err


def test_an_accepted_vulnerability_does_not_fail_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "ACCEPTED", {"PYSEC-1": "it needs a server that we do not start"})
    assert audit.main(said(1, [package("PYSEC-1")])) == 0


def test_without_vulnerabilities_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.main(said(0, [package()])) == 0
    assert capsys.readouterr().err == ""


def late(*_: object, **__: object) -> Any:
    raise subprocess.TimeoutExpired("pip-audit", 60)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (said(1, errors="ConnectionError: no route to https://pypi.example/x"),
         "no service answers (ConnectionError: no route to)"),
        (said(0, [{"name": "keras", "skip_reason": "not found"}]), "knows none of the packages"),
        (late, "within 60 s"),
        (said(1), "pip-audit said nothing"),
    ],
    ids=["no network", "an index without vulnerabilities", "a network that hangs", "silence"],
)  # fmt: skip
def test_without_a_service_a_message_is_printed_and_the_check_passes(
    run: Any, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit.main(run) == 0
    told = capsys.readouterr().err
    assert told.count("not audited") == len(audit.FILES)
    assert why in told and "pypi.example" not in told


@pytest.mark.parametrize(
    ("there", "pulls", "chosen"),
    [
        ((base_image.REGISTRY_BASE,), False, base_image.REGISTRY_BASE),
        ((), True, base_image.REGISTRY_BASE),
        ((base_image.LOADED_BASE,), True, base_image.REGISTRY_BASE),
        ((base_image.LOADED_BASE,), False, "python:3.11-slim"),
    ],
    ids=["pulled before", "pulled now", "pulled, though another one is there", "loaded"],
)
def test_the_base_is_the_pinned_one_if_it_is_available(
    there: tuple[str, ...],
    pulls: bool,
    chosen: str,
    monkeypatch: pytest.MonkeyPatch,
    machine: Machine,
) -> None:
    monkeypatch.delenv("CLUSTER_KIT_BASE", raising=False)
    monkeypatch.setattr(base_image, "_host_system", lambda: None)
    monkeypatch.setattr(base_image, "present", lambda _host, tag: tag in there)
    monkeypatch.setattr(
        base_image, "_pull", lambda _host, tag: pulls and tag == base_image.REGISTRY_BASE
    )
    assert base_image.choose_base(machine.host, lambda _: None) == chosen
