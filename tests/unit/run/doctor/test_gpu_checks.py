"""`doctor` about GPUs: each missing part has a separate line and hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.facts import GpuSetup
from cluster_kit.machine import host_facts as module
from cluster_kit.machine.host_facts import gpu_setup
from cluster_kit.run.doctor import gpu_checks
from tests.make import gpus, host

REFUSED = {"gpus": gpus(2), "gpu_refusal": 'could not select device driver "nvidia"'}


def lines(**facts: object) -> dict[str, tuple[str, str]]:
    return {check.name: (check.state, check.hint) for check in gpu_checks(host(**facts))}


def test_a_host_without_gpus_is_accepted() -> None:
    assert lines(no_gpu="no driver", gpu_setup=GpuSetup(0, "no driver")) == {"gpus": ("ok", "")}


def test_gpus_that_containers_can_use_are_one_line() -> None:
    assert lines(gpus=gpus(2)) == {"gpus": ("ok", "")}


@pytest.mark.parametrize(
    ("facts", "name", "hint"),
    [
        ({"no_gpu": "x", "gpu_setup": GpuSetup(2, "NVML Shared Library Not Found")},
         "gpu driver", "install NVIDIA's driver"),
        ({"no_gpu": "the driver shows none", "gpu_setup": GpuSetup(2)}, "gpus", "nvidia-smi mig"),
        ({**REFUSED, "gpu_setup": GpuSetup(2, toolkit=False)},
         "gpu toolkit", "install nvidia-container-toolkit"),
        ({**REFUSED, "gpu_setup": GpuSetup(2, runtime=False)},
         "gpu runtime", "nvidia-ctk runtime configure"),
        ({**REFUSED, "gpu_setup": GpuSetup(2, cdi=True)}, "gpu cdi", "nvidia-ctk cdi generate"),
        ({**REFUSED, "gpu_setup": GpuSetup(2)}, "gpus", "restart the engine"),
    ],
    ids=["driver", "MIG without slices", "toolkit", "runtime entry", "CDI spec", "none seen"],
)  # fmt: skip
def test_each_missing_part_is_named_with_its_hint(
    facts: dict[str, object], name: str, hint: str
) -> None:
    found = lines(**facts)
    assert found[name][0] == "warn"
    assert hint in found[name][1]


def test_all_missing_parts_are_reported_together_in_the_order_of_repair() -> None:
    found = lines(**REFUSED, gpu_setup=GpuSetup(2, toolkit=False, runtime=False, cdi=True))
    assert list(found) == ["gpu toolkit", "gpu runtime", "gpu cdi", "gpus"]


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PCI bus with one GPU and one bridge of NVIDIA, and a display controller of another
    vendor."""
    for name, vendor, kind in (("a", "0x10de", "0x030200"), ("b", "0x10de", "0x060400"),
                               ("c", "0x1002", "0x030000")):  # fmt: skip
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{vendor}\n")
        (tmp_path / name / "class").write_text(f"{kind}\n")
    monkeypatch.setattr(module, "PCI_DEVICES", tmp_path)
    return tmp_path


def test_the_setup_is_detected(bus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    bare = gpu_setup({"Runtimes": {"runc": {}}, "CDISpecDirs": [str(tmp_path / "cdi")]})
    assert (bare.hardware, bare.toolkit, bare.runtime) == (1, False, False)
    assert (bare.cdi, bare.cdi_spec) == (True, False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvidia-ctk").touch(0o755)
    (tmp_path / "cdi").mkdir()
    (tmp_path / "cdi" / "nvidia.yaml").write_text("kind: nvidia.com/gpu\n")
    whole = gpu_setup({"Runtimes": {"nvidia": {}}, "CDISpecDirs": [str(tmp_path / "cdi")]})
    assert (whole.toolkit, whole.runtime, whole.cdi_spec) == (True, True, True)
    assert not gpu_setup({}).cdi


def test_gpus_that_others_use_have_a_separate_line() -> None:
    there = gpus(2)
    found = lines(gpus=there, gpus_reserved=(("1", "jupyter"),))
    assert found["gpus"] == ("ok", "")
    assert found["gpus in use"][0] == "warn"
    assert "end that program" in found["gpus in use"][1]
    (check,) = [c for c in gpu_checks(host(gpus=there, gpus_reserved=(("1", "jupyter"),)))
                if c.name == "gpus in use"]  # fmt: skip
    assert check.found == "1 is used by container jupyter"
