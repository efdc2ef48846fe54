"""Any text in a file or an option gives a result, or an error with its hint, and no traceback."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.cli import manifest_options
from cluster_kit.drill import fault_plan
from cluster_kit.drill import scenario_file as scenarios
from cluster_kit.errors import ManifestError, UsageError
from cluster_kit.manifest.schema import Manifest
from cluster_kit.platforms.platform import load, plan
from tests.conftest import LEAST_EXAMPLES, limited
from tests.make import OWN, ROOT, cluster, gpus, host, inputs

sys.path.insert(0, str(ROOT / "images" / "trainer"))
from trainer.agent.errors import ContractError
from trainer.programs.detection.config import pipeline_file
from trainer.programs.detection.config.errors import PipelineError
from trainer.programs.detection.data import label_map

MANIFESTS = sorted((ROOT / "compose").glob("*.toml"))
SCENARIOS = sorted((ROOT / "compose" / "drills").glob("*.toml"))
LABELS = 'item { id: 1 name: "cat" }\nitem {\n  id: 2\n  name: "dog"  # a comment\n}\n'
PIPELINE = (
    "model { ssd { num_classes: 2 image_resizer { fixed_shape_resizer { height: 32 } } } }"
    "\ntrain_config { batch_size: 8 num_steps: 10 }\n"
    'train_input_reader { label_map_path: "a" tf_record_input_reader { input_path: "b-*" } }\n'
)
PIECES = ["", "=", "[", "]", "{", "}", '"', "'", "\n", "\\", "\0", "-1", "1e999", "nan", "9" * 5000,
          "[" * 3000, "{{ role }}", "\ud7ff", "true", "#", "deadline.job", "../..", "~", "\ufeff",
          ":", "<", ">", ";", "item", "train_config", "worker", "[[fault]]"]  # fmt: skip
Changes = list[tuple[int, int, str]]
edits = st.lists(
    st.tuples(st.integers(0, 4000), st.integers(0, 40), st.sampled_from(PIECES)), max_size=4
)


def edited(text: str, changes: Changes) -> str:
    """Returns the text with a few places overwritten: nearly valid inputs find most bugs."""
    for at, length, piece in changes:
        begin = at % (len(text) + 1)
        text = text[:begin] + piece + text[begin + length :]
    return text


def well_told(error: ManifestError) -> None:
    assert error.problems
    for problem in error.problems:
        assert problem.key_path and problem.rule and problem.hint_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@given(text=st.sampled_from(MANIFESTS).map(Path.read_text), changes=edits)
def test_a_manifest_of_any_text(text: str, changes: Changes, folder: Path) -> None:
    file = folder / "mine.toml"
    file.write_text(edited(text, changes), encoding="utf-8")
    try:
        read = load(file)
        plan(read, inputs(read.manifest), host(gpus=gpus(2)), OWN)
    except ManifestError as error:
        well_told(error)


@given(noise=st.binary(max_size=300))
def test_a_manifest_of_any_bytes(noise: bytes, folder: Path) -> None:
    file = folder / "bytes.toml"
    file.write_bytes(noise)
    with contextlib.suppress(ManifestError):
        load(file)


words = st.text(max_size=30) | st.sampled_from(PIECES)
names = st.sampled_from([*Manifest.model_fields, "role.worker.cpus", "task.worker-0.ip", "a.b", ""])


@given(st.lists(st.tuples(names, words).map("=".join) | words, max_size=4))
def test_any_words_after_set(texts: list[str]) -> None:
    try:
        given_values: dict[str, Any] = manifest_options.values({}, texts)
        read = load(ROOT / "compose" / "quickstart.toml", given_values)
        plan(read, inputs(read.manifest), host(gpus=gpus(2)), OWN)
    except UsageError as error:
        assert error.message and error.hint
        if isinstance(error, ManifestError):
            well_told(error)
    except ManifestError as error:
        well_told(error)


@given(text=st.sampled_from(SCENARIOS).map(Path.read_text), changes=edits)
def test_a_scenario_of_any_text(text: str, changes: Changes, folder: Path) -> None:
    file = folder / "scenario.toml"
    file.write_text(edited(text, changes), encoding="utf-8")
    try:
        fault_plan.refuse(scenarios.load(file), cluster())
    except ManifestError as error:
        well_told(error)


@given(changes=edits)
def test_a_label_map_of_any_text(changes: Changes, folder: Path) -> None:
    file = folder / "labels.pbtxt"
    file.write_text(edited(LABELS, changes), encoding="utf-8")
    try:
        assert label_map.read(file)
    except ContractError as error:
        assert "labels.pbtxt" in str(error)


@given(changes=edits, overrides=st.lists(st.tuples(words, words).map("=".join) | words, max_size=2))
def test_a_classic_pipeline_of_any_text(
    changes: Changes, overrides: list[str], folder: Path
) -> None:
    file = folder / "mine.config"
    file.write_text(edited(PIPELINE, changes), encoding="utf-8")
    with contextlib.suppress(PipelineError):
        pipeline_file.load(file, {}, overrides)


OWN_PIPELINE = next((ROOT / "images").rglob("pipeline.toml"))


@given(changes=edits, overrides=st.lists(words, max_size=2))
def test_a_pipeline_of_any_text(changes: Changes, overrides: list[str], folder: Path) -> None:
    file = folder / "pipeline.toml"
    file.write_text(edited(OWN_PIPELINE.read_text(), changes), encoding="utf-8")
    with contextlib.suppress(PipelineError):
        pipeline_file.load(file, {"data": folder}, overrides)


def test_after_its_time_a_property_gets_no_further_example() -> None:
    late = limited(lambda: None, 0.0, "late")
    for _ in range(LEAST_EXAMPLES):
        late()
    with pytest.raises(pytest.skip.Exception, match="late: no time for more than 10 examples"):
        late()


def test_a_failed_property_is_repeated_after_its_time() -> None:
    """Hypothesis repeats the example, and would report a property that does not fail again as
    flaky."""
    fails = limited(lambda: pytest.fail("wrong"), 0.0, "fails")
    for _ in range(LEAST_EXAMPLES + 2):
        with pytest.raises(pytest.fail.Exception, match="wrong"):
            fails()
