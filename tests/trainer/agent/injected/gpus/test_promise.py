"""A promise of GPUs: the right number, and the right ones."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from trainer.agent.injected.gpu_promises import GIVEN, Gpu, broken_promise, read, reader, shown

FIRST = Gpu("GPU 0 (GPU-0a)", "00000000:3B:00.0", "GPU-00000000-1111-2222-3333-4444444444aa")
SECOND = Gpu("GPU 1 (GPU-0b)", "00000000:5E:00.0", "GPU-00000000-1111-2222-3333-4444444444bb")
SLICES = [
    Gpu(f"GPU 2:{index} (MIG-{index})", "00000000:86:00.0",
        f"MIG-00000000-1111-2222-3333-44444444440{index}")
    for index in (0, 1)
]  # fmt: skip


def at(pci: str) -> Gpu:
    """Returns a GPU as a server describes it: product name and bus id."""
    return Gpu("NVIDIA H200", pci)


@pytest.mark.parametrize(
    ("promised", "sees"),
    [
        ([], []),
        ([FIRST], [at("0000:3b:00.0")]),
        ([FIRST, SECOND], [at("0000:5e:00.0"), at("0000:3b:00.0")]),
        ([FIRST], [Gpu("NVIDIA H200", "", "00000000-1111-2222-3333-4444444444AA")]),
        ([FIRST], [Gpu("NVIDIA H200")]),
        ([Gpu("GPU 0")], [at("0000:3b:00.0")]),
        ([SLICES[1]], [Gpu("a MIG slice", "0000:86:00.0", SLICES[1].uuid)]),
        ([SLICES[1]], [at("0000:86:00.0")]),
        ([Gpu("old form", "", "MIG-GPU-5c1d/1/0")], [Gpu("x", "0000:86:00.0", SLICES[0].uuid)]),
    ],
    ids=["none", "by bus id", "any order", "by UUID", "nothing known of what it sees",
         "nothing known of what was promised", "the slice", "a slice by its GPU",
         "a slice that NVML names by its GPU"],
)  # fmt: skip
def test_promises_that_are_kept(promised: list[Gpu], sees: list[Gpu]) -> None:
    assert broken_promise("worker-1", promised, sees) == ""


@pytest.mark.parametrize(
    ("promised", "sees", "message"),
    [
        ([SECOND], [at("0000:3b:00.0")],
         "worker-1 was promised GPU 1 (GPU-0b), pci 0000:5e:00.0, "
         "sees NVIDIA H200 (pci 0000:3b:00.0)"),
        ([FIRST, SECOND], [at("0000:3b:00.0"), at("0000:86:00.0")],
         "worker-1 was promised 2 GPUs (GPU 0 (GPU-0a), pci 0000:3b:00.0, GPU 1 (GPU-0b), "
         "pci 0000:5e:00.0), sees NVIDIA H200 (pci 0000:3b:00.0), NVIDIA H200 (pci 0000:86:00.0)"),
        ([SECOND], [Gpu("NVIDIA H200", "0000:5e:00.0", FIRST.uuid)],
         "worker-1 was promised GPU 1 (GPU-0b), pci 0000:5e:00.0, "
         "sees NVIDIA H200 (pci 0000:5e:00.0)"),
        ([SLICES[1]], [Gpu("a MIG slice", "0000:86:00.0", SLICES[0].uuid)],
         "worker-1 was promised GPU 2:1 (MIG-1), pci 0000:86:00.0, "
         "sees a MIG slice (MIG-00000000-1111-2222-3333-444444444400, pci 0000:86:00.0)"),
        ([SECOND], [], "worker-1 was promised GPU 1 (GPU-0b), pci 0000:5e:00.0, sees none"),
        ([], [at("0000:3b:00.0")],
         "worker-1 was promised no GPU, sees 1 (NVIDIA H200 (pci 0000:3b:00.0))"),
    ],
    ids=["another GPU", "one of two is another", "the UUID decides", "another slice of the GPU",
         "none", "one too many"],
)  # fmt: skip
def test_promises_that_are_broken(promised: list[Gpu], sees: list[Gpu], message: str) -> None:
    assert broken_promise("worker-1", promised, sees) == message


def test_all_workers_on_the_first_gpu_are_found() -> None:
    """The number is right, the identity is wrong: each worker sees one GPU."""
    outputs = [
        broken_promise(f"worker-{i}", [gpu], [at("0000:3b:00.0")])
        for i, gpu in enumerate((FIRST, SECOND))
    ]
    assert [bool(text) for text in outputs] == [False, True]


def test_a_written_promise_can_be_read() -> None:
    assert read("") == ()
    assert read(json.dumps(["GPU 0", FIRST._asdict()])) == (Gpu("GPU 0"), FIRST)
    assert shown(Gpu("/device:GPU:0")) == "/device:GPU:0"


OWN = "5c1d6a2e-1111-2222-3333-4444444444aa"
OTHER = "77ab01c3-1111-2222-3333-4444444444bb"
TWO = (Gpu("GPU 1 of 2 of its node"), Gpu("GPU 2 of 2 of its node"))
"""The promise for a task on a swarm: only a number."""


def given(promised: Sequence[Gpu], value: str) -> tuple[Gpu, ...]:
    return reader({GIVEN: value})(json.dumps([gpu._asdict() for gpu in promised]))


def seen(*uuids: str) -> list[Gpu]:
    """Returns GPUs as the CUDA driver names them."""
    return [Gpu("NVIDIA H200", f"0000:{at}b:00.0", uuid) for at, uuid in enumerate(uuids, 1)]


@pytest.mark.parametrize(
    "value",
    [f"GPU-{OWN},GPU-{OTHER}", f"GPU-{OTHER}, GPU-{OWN}", "GPU-5c1d6a2e,GPU-77ab", f"{OWN},{OTHER}",
     f"gpu-{OWN.upper()},GPU-7"],
    ids=["UUIDs", "in any order", "abbreviated", "without a prefix", "in capitals"],
)  # fmt: skip
def test_gpus_that_a_swarm_assigned_are_compared_by_uuid(value: str) -> None:
    promised = given(TWO, value)
    assert broken_promise("worker-1", promised, seen(OWN, OTHER)) == ""
    others = broken_promise("worker-1", promised, seen(OWN, OWN))
    first, second = (text.strip() for text in value.split(","))
    assert others == (
        f"worker-1 was promised 2 GPUs (GPU 1 of 2 of its node ({first}), "
        f"GPU 2 of 2 of its node ({second})), sees NVIDIA H200 (uuid {OWN}, pci 0000:1b:00.0), "
        f"NVIDIA H200 (uuid {OWN}, pci 0000:2b:00.0)"
    )
    assert broken_promise("worker-1", promised, []).endswith(f"({second})), sees none")
    assert broken_promise("worker-1", promised, [Gpu("NVIDIA H200")] * 2) == "", "an old driver"


@pytest.mark.parametrize("value", ["", "2", "GPU-5c1d", "gpu0,gpu1", f"GPU-{OWN},1", "GPU-,GPU-"])
def test_nothing_is_compared_if_a_swarm_assigned_a_number(value: str) -> None:
    """Nor if the names are not UUIDs, or the number differs from the promised one."""
    assert given(TWO, value) == TWO


def test_a_promise_with_identities_is_not_replaced() -> None:
    assert given([FIRST], f"GPU-{OTHER}") == (FIRST,)
    assert given([Gpu("GPU 0", "0000:3b:00.0")], f"GPU-{OTHER}")[0].uuid == ""
    assert given((), "GPU-5c1d") == ()


def test_the_longer_of_two_uuid_prefixes_is_matched_first() -> None:
    """`GPU-5` is a prefix of both UUIDs, `GPU-5c` of one."""
    near = "5d000000" + OWN[8:]
    promised = given(TWO, "GPU-5,GPU-5c")
    assert broken_promise("worker-0", promised, seen(OWN, near)) == ""
    assert broken_promise("worker-0", promised, seen(near, OWN)) == ""
    assert broken_promise("worker-0", promised, seen(near, near)) != ""
