"""docs/predict.png: a published table and its prediction."""

from __future__ import annotations

from pathlib import Path

from cluster_kit.errors import UsageError
from cluster_kit.predict import picture
from cluster_kit.predict.answer import predict
from cluster_kit.predict.profile import load
from cluster_kit.predict.question import Question
from cluster_kit.util.paths import FILES

TABLE = FILES / "tests" / "predict" / "tables" / "tf-k80-resnet152-32.toml"


def draw(file: Path) -> None:
    """Write the picture; raises UsageError without matplotlib."""
    answer = predict(load(TABLE), Question((1, 2, 4, 8, 16, 32, 64), (1, 2, 4)))
    if not picture.draw(answer, file):
        raise UsageError("matplotlib is not installed", "`make compare` installs it")
