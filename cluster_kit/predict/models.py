"""The variables of well-known models, in the order in which they are created. Pure.

Placement by round robin depends on the order, and on how many small variables come between large
ones, trained or not: with four variables for each layer, all kernels are on every fourth ps. So
these are the variables of the architecture, not only its size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

Shapes = list[tuple[str, tuple[int, ...]]]
NOT_TRAINED = ("/moving_mean", "/moving_variance")
"""Ends of the names of variables that are placed as all others, and do not travel in a step."""


def _resnet(blocks: tuple[int, int, int, int]) -> Shapes:
    """ResNet with bottlenecks: https://arxiv.org/abs/1512.03385, table 1."""
    shapes: Shapes = []

    def convolution(name: str, kernel: int, before: int, after: int) -> None:
        shapes.append((f"{name}/kernel", (kernel, kernel, before, after)))
        for one in ("gamma", "beta", *NOT_TRAINED):
            shapes.append((f"{name}/{one.lstrip('/')}", (after,)))

    convolution("conv1", 7, 3, 64)
    before = 64
    for stage, (count, width) in enumerate(zip(blocks, (64, 128, 256, 512), strict=True), 2):
        for block in range(count):
            name = f"conv{stage}_{block + 1}"
            if block == 0:
                convolution(f"{name}/shortcut", 1, before, 4 * width)
            convolution(f"{name}/a", 1, before, width)
            convolution(f"{name}/b", 3, width, width)
            convolution(f"{name}/c", 1, width, 4 * width)
            before = 4 * width
    return [*shapes, ("logits/kernel", (2048, 1000)), ("logits/bias", (1000,))]


def _vgg16() -> Shapes:
    """VGG-16: https://arxiv.org/abs/1409.1556, configuration D."""
    shapes: Shapes = []
    before = 3
    for stage, (count, width) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), 1):
        for layer in range(count):
            name = f"conv{stage}_{layer + 1}"
            shapes += [(f"{name}/kernel", (3, 3, before, width)), (f"{name}/bias", (width,))]
            before = width
    for name, before, after in (("fc6", 25088, 4096), ("fc7", 4096, 4096), ("fc8", 4096, 1000)):
        shapes += [(f"{name}/kernel", (before, after)), (f"{name}/bias", (after,))]
    return shapes


def _inception_v3() -> Shapes:
    """Inception v3 without its auxiliary head: https://arxiv.org/abs/1512.00567."""
    shapes: Shapes = []

    def branch(name: str, before: int, *layers: tuple[int, int, int]) -> None:
        """Convolutions one after the other: height, width, channels of each."""
        for number, (height, width, after) in enumerate(layers):
            layer = f"{name}{number}" if len(layers) > 1 else name
            shapes.append((f"{layer}/kernel", (height, width, before, after)))
            for one in ("beta", *NOT_TRAINED):
                shapes.append((f"{layer}/{one.lstrip('/')}", (after,)))
            before = after

    branch("conv", 3, (3, 3, 32), (3, 3, 32), (3, 3, 64), (1, 1, 80), (3, 3, 192))
    before = 192
    for block, pool in (("5b", 32), ("5c", 64), ("5d", 64)):
        branch(f"mixed_{block}/a", before, (1, 1, 64))
        branch(f"mixed_{block}/b", before, (1, 1, 48), (5, 5, 64))
        branch(f"mixed_{block}/c", before, (1, 1, 64), (3, 3, 96), (3, 3, 96))
        branch(f"mixed_{block}/d", before, (1, 1, pool))
        before = 224 + pool
    branch("mixed_6a/a", before, (3, 3, 384))
    branch("mixed_6a/b", before, (1, 1, 64), (3, 3, 96), (3, 3, 96))
    for block, w in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        branch(f"mixed_{block}/a", 768, (1, 1, 192))
        branch(f"mixed_{block}/b", 768, (1, 1, w), (1, 7, w), (7, 1, 192))
        branch(f"mixed_{block}/c", 768, (1, 1, w), (7, 1, w), (1, 7, w), (7, 1, w), (1, 7, 192))
        branch(f"mixed_{block}/d", 768, (1, 1, 192))
    branch("mixed_7a/a", 768, (1, 1, 192), (3, 3, 320))
    branch("mixed_7a/b", 768, (1, 1, 192), (1, 7, 192), (7, 1, 192), (3, 3, 192))
    for block, before in (("7b", 1280), ("7c", 2048)):
        branch(f"mixed_{block}/a", before, (1, 1, 320))
        branch(f"mixed_{block}/b", before, (1, 1, 384))
        branch(f"mixed_{block}/b1", 384, (1, 3, 384))
        branch(f"mixed_{block}/b2", 384, (3, 1, 384))
        branch(f"mixed_{block}/c", before, (1, 1, 448), (3, 3, 384))
        branch(f"mixed_{block}/c1", 384, (1, 3, 384))
        branch(f"mixed_{block}/c2", 384, (3, 1, 384))
        branch(f"mixed_{block}/d", before, (1, 1, 192))
    return [*shapes, ("logits/kernel", (2048, 1001)), ("logits/bias", (1001,))]


def _bert_base() -> Shapes:
    """BERT-base, uncased: https://arxiv.org/abs/1810.04805."""
    h = 768
    shapes: Shapes = [
        ("embeddings/word", (30522, h)),
        ("embeddings/type", (2, h)),
        ("embeddings/position", (512, h)),
        ("embeddings/beta", (h,)),
        ("embeddings/gamma", (h,)),
    ]

    def dense(name: str, before: int, after: int) -> None:
        shapes.extend([(f"{name}/kernel", (before, after)), (f"{name}/bias", (after,))])

    for layer in range(12):
        name = f"layer_{layer}"
        for part in ("query", "key", "value", "output"):
            dense(f"{name}/{part}", h, h)
        shapes += [(f"{name}/norm1/beta", (h,)), (f"{name}/norm1/gamma", (h,))]
        dense(f"{name}/intermediate", h, 4 * h)
        dense(f"{name}/down", 4 * h, h)
        shapes += [(f"{name}/norm2/beta", (h,)), (f"{name}/norm2/gamma", (h,))]
    dense("pooler", h, h)
    return shapes


MODELS: Mapping[str, Callable[[], Shapes]] = MappingProxyType(
    {
        "inception-v3": _inception_v3,
        "resnet-50": lambda: _resnet((3, 4, 6, 3)),
        "resnet-101": lambda: _resnet((3, 4, 23, 3)),
        "resnet-152": lambda: _resnet((3, 8, 36, 3)),
        "vgg-16": _vgg16,
        "bert-base": _bert_base,
    }
)
"""The models that a profile can name in place of its variables."""
