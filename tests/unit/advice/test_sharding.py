"""Sharding by `input_pipeline_id`, and class weights, under ParameterServerStrategy are detected;
elsewhere they are correct."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.advice.of_program import advise
from tests.make import ROOT, manifest
from tests.unit.advised import COORDINATED, hints

SHARDED = """
def examples(context):
    data = tf.data.Dataset.range(10)
    return data.shard(context.num_input_pipelines, context.input_pipeline_id).repeat()
"""


@pytest.mark.parametrize(
    "text",
    [
        COORDINATED + SHARDED,
        COORDINATED + SHARDED.replace("context.input", "index=context.input"),
        COORDINATED.replace("distribute.", "distribute.experimental.") + SHARDED,
        {"train.py": "import data\n" + COORDINATED, "data.py": "import tensorflow as tf" + SHARDED},
    ],
)
def test_it_is_named_with_its_hint(text: str | dict[str, str], tmp_path: Path) -> None:
    (hint,) = hints(text, tmp_path)
    file = "train.py" if isinstance(text, str) else "data.py"
    assert hint.location.startswith(f"{file}:")
    assert "each gets all of the data" in hint.rule
    assert "from cluster_kit_input import shard" in hint.fix


@pytest.mark.parametrize(
    "text",
    [
        COORDINATED + SHARDED.replace("context.input_pipeline_id", "worker_index()"),
        COORDINATED + "if many:\n    s = tf.distribute.MultiWorkerMirroredStrategy()\n" + SHARDED,
        COORDINATED + "def examples(context):\n    print(context.input_pipeline_id)\n",
    ],
)
def test_uncertain_cases_are_accepted(text: str, tmp_path: Path) -> None:
    assert not [h for h in hints(text, tmp_path) if "input_pipeline_id" in h.what]


def test_a_tutorials_program_gets_the_warning() -> None:
    path = ROOT / "tests" / "e2e" / "programs" / "keras_fit.py"
    (hint,) = advise(path, manifest(program=str(path), style="all-tasks"))
    assert (hint.location, "input_pipeline_id" in hint.what) == ("keras_fit.py:26", True)


FIT = "model.fit(data, epochs=2, class_weight={0: 1.0, 1: 3.0})\n"


def test_class_weights_under_a_coordinator_are_named(tmp_path: Path) -> None:
    found = [h for h in hints(COORDINATED + FIT, tmp_path) if "class_weight" in h.what]
    assert [(h.location, "Keras ignores it" in h.rule) for h in found] == [("train.py:3", True)]
    assert "tf.where(" in found[0].fix


def test_class_weights_under_a_flag_may_be_given(tmp_path: Path) -> None:
    fit = "model.fit(data, class_weight={0: 1.0} if flags.weigh else None)\n"
    found = [h for h in hints(COORDINATED + fit, tmp_path) if "class_weight" in h.what]
    assert [h.what for h in found] == ["`fit` may get `class_weight`"]


@pytest.mark.parametrize(
    "text",
    [
        COORDINATED.replace("ParameterServer", "MultiWorkerMirrored") + FIT,
        COORDINATED + "if many:\n    s = tf.distribute.MultiWorkerMirroredStrategy()\n" + FIT,
        COORDINATED + FIT.replace("{0: 1.0, 1: 3.0}", "None"),
        COORDINATED + FIT.replace(", class_weight={0: 1.0, 1: 3.0}", ""),
        COORDINATED + "class Mine:\n    def fit(self, data, **weights): pass\n" + FIT,
    ],
)
def test_class_weights_elsewhere_are_accepted(text: str, tmp_path: Path) -> None:
    assert not [h for h in hints(text, tmp_path) if "class_weight" in h.what]
