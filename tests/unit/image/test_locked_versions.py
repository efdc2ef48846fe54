"""Another TensorFlow in the image: its lock file, its tag, and the errors if it is not
available."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cluster_kit.errors import EngineError, HostError, ManifestError, UsageError
from cluster_kit.image import kit_image, user_image
from cluster_kit.resolved import Cluster
from cluster_kit.util.process import Completed
from tests.fakes.hosts import Machine
from tests.fakes.stage import Stage, stage
from tests.make import cluster

__all__ = ["stage"]
LOCK = "tensorflow-cpu==2.16.2 \\\n    --hash=sha256:0\n"
NONE_FOR_IT = (
    "#7 1.0 resolving for Python 3.12\n#7 2.0 ERROR: Could not find a version that satisfies the "
    "requirement tensorflow-cpu==2.15.* (from versions: 2.16.1, 2.16.2, 2.17.0, 2.21.0)\n"
)
NO_NIGHTLY = (
    "#7 2.0 ERROR: Could not find a version that satisfies the requirement tf-nightly-cpu "
    "(from versions: none)\n"
)


def asked(version: str = "2.16") -> Cluster:
    """Returns a cluster as it is planned before its packages are resolved."""
    from dataclasses import replace

    made = cluster(tensorflow=version)
    return replace(made, image=f"cluster-kit/trainer:cpu-tf{version}-{kit_image.UNLOCKED}")


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch, machine: Machine) -> list[Any]:
    """Records the requested builds; each writes a lock file, or fails with a text from
    `pip.append`."""
    builds: list[Any] = []
    others = machine.host.processes

    def run(command: tuple[str, ...], **options: Any) -> Completed:
        if not any("dest=" in word for word in command):
            return others.run(command, **options)
        builds.append(command)
        if len(builds) > 1:
            return Completed(command, 1, "", str(builds[0]))
        (to,) = (word.partition("dest=")[2] for word in command if "dest=" in word)
        Path(to, "locked.txt").write_text(LOCK)
        return Completed(command, 0, "", "")

    machine.starts(run=run)
    monkeypatch.setattr(kit_image, "choose_base", lambda *_: "python:3.11-slim")
    monkeypatch.setattr(kit_image, "_engines_own_builder", lambda *_: "default")
    monkeypatch.setattr("cluster_kit.image.pip_config._pip_config_list", lambda *_: "")
    return builds


def test_a_lock_file_is_written_once_and_is_part_of_the_tag(
    pip: list[Any], tmp_path: Path, machine: Machine
) -> None:
    assert kit_image.tag(tmp_path, "2.16", "cpu").endswith("-unlocked")
    assert kit_image.ensure_lock(machine.host, asked(), tmp_path, print)
    file = kit_image.lock_file(tmp_path, "2.16", "cpu")
    assert file.read_text() == LOCK
    first = kit_image.tag(tmp_path, "2.16", "cpu")
    assert first.startswith("cluster-kit/trainer:cpu-tf2.16-")
    file.write_text(LOCK.replace("2.16.2", "2.16.1"))
    assert kit_image.tag(tmp_path, "2.16", "cpu") not in (first, kit_image.image_tag("cpu"))
    assert not kit_image.ensure_lock(machine.host, cluster(tensorflow="2.16"), tmp_path, print)
    assert not kit_image.ensure_lock(machine.host, cluster(), tmp_path, print)
    assert len(pip) == 1


def test_a_version_without_a_wheel_is_reported_with_the_available_ones(
    pip: list[Any], tmp_path: Path, machine: Machine
) -> None:
    pip.append(NONE_FOR_IT)
    with pytest.raises(ManifestError) as told:
        kit_image.ensure_lock(machine.host, asked("2.15"), tmp_path, print)
    text = str(told.value)
    assert "no such TensorFlow for Python 3.12" in text and "it has 2.16, 2.17, 2.21" in text
    assert 'write `tensorflow = "2.21"`, or name a base' in text
    assert not list(tmp_path.iterdir()), "nothing half-made is left"


def test_an_index_without_nightly_builds_is_reported(
    pip: list[Any], tmp_path: Path, machine: Machine
) -> None:
    pip.append(NO_NIGHTLY)
    with pytest.raises(ManifestError, match="has no nightly TensorFlow"):
        kit_image.ensure_lock(machine.host, asked("nightly"), tmp_path, print)


def test_any_other_failure_has_pips_own_message(
    pip: list[Any], tmp_path: Path, machine: Machine
) -> None:
    pip.append("#7 2.0 ERROR: no route to the index")
    with pytest.raises(EngineError, match="no route to the index"):
        kit_image.ensure_lock(machine.host, asked(), tmp_path, print)


def test_a_folder_that_cannot_be_written_is_named(
    pip: list[Any], tmp_path: Path, machine: Machine
) -> None:
    (tmp_path / "compose").write_text("a file")
    with pytest.raises(HostError, match="cannot be written"):
        kit_image.ensure_lock(machine.host, asked(), tmp_path / "compose", print)


def test_the_build_uses_the_lock_file_instead_of_the_kits_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: Machine
) -> None:
    built: dict[str, Any] = {}
    machine.locks_in(tmp_path)
    monkeypatch.setattr(user_image, "image_present", lambda *_: False)
    monkeypatch.setattr(user_image, "ensure_image", lambda *_, **keys: built.update(keys))
    made = cluster(tensorflow="2.16", image="trainer")
    assert user_image.build_layer(machine.host, made, tmp_path, print)
    assert built["tag"] == made.image
    assert built["lock"] == kit_image.lock_file(tmp_path, "2.16", "cpu")
    with kit_image._context_of(Path(__file__)) as (argument,):
        assert argument.startswith("--build-context=lock=")
        assert Path(argument.rpartition("=")[2], "locked.txt").exists()
    with kit_image._context_of(None) as none:
        assert none == ()


def test_up_resolves_and_plans_again_and_starts_the_locked_version(
    stage: Stage, pip: list[Any]
) -> None:
    assert stage.up(tensorflow="2.16").success
    (file,) = stage.docker.ups
    tag = kit_image.tag(stage.workspace.manifests, "2.16", "cpu")
    assert f"image: '{tag}'" in file.read_text() and "unlocked" not in tag


def test_a_file_without_an_image_name_is_not_rendered(stage: Stage) -> None:
    from cluster_kit.run.prepare import prepare, refuse_unlocked
    from cluster_kit.run.request import Request

    prepared = prepare(stage.host, Request("demo", {"tensorflow": "2.16"}), stage.workspace, None)
    with pytest.raises(UsageError, match="are not resolved yet") as told:
        refuse_unlocked(prepared)
    assert "cluster-kit image build demo" in told.value.hint


@pytest.fixture(scope="module")
def lock() -> ModuleType:
    """Returns the script that runs in the build."""
    spec = importlib.util.spec_from_file_location("lock", kit_image.SOURCE / "recipe" / "lock.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_names_of_packages_on_arm64(lock: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock.platform, "machine", lambda: "aarch64")
    assert lock.names("2.16", "cpu") == ("tensorflow==2.16.*", "tf-keras==2.16.*")
    assert lock.names("nightly", "cpu") == ("tf-nightly", "tf-keras-nightly")


def test_names_of_packages_by_version_and_variant(
    lock: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock.platform, "machine", lambda: "x86_64")
    assert lock.names("2.15", "cpu") == ("tensorflow-cpu==2.15.*", "tf-keras==2.15.*")
    assert lock.names("2.16.1", "gpu") == ("tensorflow[and-cuda]==2.16.1", "tf-keras==2.16.*")
    assert lock.names("nightly", "cpu") == ("tf-nightly-cpu", "tf-keras-nightly")


def test_pips_report_becomes_pins_with_hashes(
    lock: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def pip(command: tuple[str, ...], **_: Any) -> subprocess.CompletedProcess[str]:
        (report,) = (word.partition("=")[2] for word in command if word.startswith("--report="))
        name = "tf_keras" if "--no-deps" in command else "libclang"
        found = {"metadata": {"name": name, "version": "2"}}
        found["download_info"] = {"archive_info": {"hashes": {"sha256": "ab"}}}  # type: ignore[dict-item]
        Path(report).write_text(json.dumps({"install": [found]}))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(lock.subprocess, "run", pip)
    assert lock.main("2.16", "cpu", tmp_path / "locked.txt", []) == 0
    text = (tmp_path / "locked.txt").read_text()
    assert "tf-keras==2 \\\n    --hash=sha256:ab\n" in text and "libclang" not in text
