"""Programs as users write them, and the advice about them before a start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster_kit.advice.of_program import Fitted, Hint, advise, fit
from cluster_kit.platforms.platform import load
from tests.make import manifest

COORDINATED = """\
import tensorflow as tf
strategy = tf.distribute.ParameterServerStrategy(resolver)
"""
KERAS_3_FIT = f"""\
import keras
{COORDINATED}
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(1)])
model.fit(data, epochs=2, steps_per_epoch=3)
"""


def hints(text: str | dict[str, str], folder: Path, **keys: Any) -> list[Hint]:
    files = {"train.py": text} if isinstance(text, str) else text
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return list(advise(folder / "train.py", manifest(program="train.py", **keys)))


def fitted(text: str, folder: Path, manifest: str = "", **overrides: Any) -> Fitted:
    """Returns what becomes of a manifest with these lines, by `cluster-kit up` with these
    options."""
    (folder / "train.py").write_text(text, encoding="utf-8")
    file = folder / "demo.toml"
    file.write_text(f'format = 1\nname = "demo"\n{manifest}', encoding="utf-8")
    return fit(folder / "train.py", load(file, overrides))
