"""Simulated hosts: 0, 1, 2 or 8 GPUs of mixed models, some divided by MIG with gaps in between."""

from __future__ import annotations

from hypothesis import strategies as st

from cluster_kit.facts import Gpu, Slice
from tests.make import GIB

MODELS = (
    ("Tesla T4", 15 * GIB),
    ("NVIDIA A100-SXM4-80GB", 80 * GIB),
    ("NVIDIA H100 PCIe", 80 * GIB),
    ("NVIDIA GeForce RTX 4090", 24 * GIB),
)
PROFILES = (("1g.10gb", 10 * GIB), ("2g.20gb", 20 * GIB), ("3g.40gb", 40 * GIB))


def gpu(index: int, *slices: int, mig: bool = False, memory: int = 80 * GIB) -> Gpu:
    """Returns a GPU, or one in MIG mode with slices at these indexes."""
    parts = tuple(
        Slice(i, f"MIG-{index:04d}-{i}-aaaa", "1g.10gb", 10 * GIB) for i in sorted(slices)
    )
    return Gpu(index, f"GPU-{index:04d}-aaaa", "NVIDIA A100", memory, mig or bool(slices), parts)


@st.composite
def inventories(draw: st.DrawFn, least: int = 0) -> tuple[Gpu, ...]:
    count = draw(st.sampled_from([n for n in (0, 1, 2, 8) if n >= least]))
    return tuple(draw(_gpus(index)) for index in range(count))


@st.composite
def _gpus(draw: st.DrawFn, index: int) -> Gpu:
    name, memory = draw(st.sampled_from(MODELS))
    uuid = f"GPU-{index:04d}-aaaa"
    if not draw(st.booleans()):
        return Gpu(index, uuid, name, memory)
    holes = draw(st.sets(st.integers(0, 6)))
    parts = [
        Slice(i, f"MIG-{index:04d}-{i}-aaaa", *draw(st.sampled_from(PROFILES)))
        for i in sorted(holes)
    ]
    return Gpu(index, uuid, name, memory, mig=True, slices=tuple(parts))
