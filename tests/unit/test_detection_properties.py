"""Properties of detection's pure parts, over random inputs from Hypothesis."""

from __future__ import annotations

import dataclasses
import io
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.make import ROOT

sys.path.insert(0, str(ROOT / "images" / "trainer"))
from trainer.programs.detection import text_format
from trainer.programs.detection.config import pipeline_file
from trainer.programs.detection.config.errors import PipelineError
from trainer.programs.detection.config.pipeline import Pipeline
from trainer.programs.detection.convert.sources import PixelBox, scaled
from trainer.programs.detection.data import label_map
from trainer.programs.detection.data.annotation import Box, image_size

NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
LABELS = label_map.of_names(["cat"])


@given(st.dictionaries(st.integers(1, 1_000_000), NAMES, min_size=1, max_size=8))
def test_written_label_maps_can_be_read(names: dict[int, str]) -> None:
    unique = {name: number for number, name in names.items()}
    labels = label_map.LabelMap({number: name for name, number in unique.items()}, {})
    assert label_map.parse(labels.to_text()) == labels


@given(st.text(st.sampled_from("a{}<>[]:,;'\"\\\n #1.-ex"), max_size=40))
def test_any_text_is_a_message_or_an_error_with_a_line(text: str) -> None:
    try:
        text_format.parse(text)
    except text_format.TextFormatError as problem:
        assert str(problem).startswith("line ")


@given(st.binary(max_size=200), st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"]))
def test_any_bytes_have_a_size_or_none(noise: bytes, start: bytes) -> None:
    size = image_size(start + noise)
    assert size is None or all(side >= 0 for side in size)


@given(st.integers(1, 400), st.integers(1, 400), st.sampled_from(["PNG", "JPEG"]), st.booleans())
def test_sizes_of_real_images_are_found(
    width: int, height: int, form: str, progressive: bool
) -> None:
    file = io.BytesIO()
    Image.new("L", (width, height)).save(file, form, progressive=progressive)
    assert image_size(file.getvalue()) == (height, width)


SIDE = st.floats(0, 100)


@given(SIDE, SIDE, SIDE, SIDE)
def test_boxes_inside_an_image_have_no_problem_and_keep_their_place(
    y: float, x: float, height: float, width: float
) -> None:
    inside = PixelBox(y, x, min(y + height, 100), min(x + width, 100), "cat")
    box = scaled(inside, 100, 100, LABELS)
    assert all(0 <= side <= 1 for side in (box.ymin, box.xmin, box.ymax, box.xmax))
    empty = inside.ymin >= inside.ymax or inside.xmin >= inside.xmax
    if not empty and box.ymin < box.ymax and box.xmin < box.xmax:
        assert box.problem() == ""
        assert box.ymax * 100 == pytest.approx(inside.ymax)
    else:
        assert "a box needs" in box.problem()


@given(st.sampled_from(["ymin", "xmin", "ymax", "xmax"]), st.floats())
def test_every_side_that_is_out_of_order_is_found(side: str, value: float) -> None:
    box = dataclasses.replace(Box(0.4, 0.4, 0.6, 0.6, "cat", 1), **{side: value})
    low, high = (-0.001, 0.6) if "min" in side else (0.4, 1.001)
    right = low <= value < high if "min" in side else low < value <= high
    assert (box.problem() == "") == right


def base() -> dict:
    reader = {"input_path": "a", "label_map_path": "b"}
    rate = {"type": "constant", "learning_rate": 0.1}
    return {
        "model": {"num_classes": 3},
        "train_config": {"num_steps": 1, "learning_rate": rate},
        "train_input_reader": dict(reader),
        "eval_input_reader": dict(reader),
    }


@given(
    st.integers(1, 10**6),
    st.floats(1e-9, 10),
    st.lists(st.floats(0.1, 10), min_size=1, max_size=4),
    NAMES.filter(lambda name: "{{" not in name and "\0" not in name),
)
def test_written_pipelines_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, steps: int, rate: float, ratios: list, path: str
) -> None:
    raw = base()
    raw["train_config"] |= {"num_steps": steps}
    raw["train_config"]["learning_rate"]["learning_rate"] = rate
    raw["model"]["anchors"] = {"aspect_ratios": tuple(ratios)}
    raw["train_input_reader"]["input_path"] = path
    pipeline = Pipeline.model_validate(raw, context={".": Path("/here")})
    file = tmp_path_factory.mktemp("p") / "p.toml"
    file.write_text(pipeline_file.to_toml(pipeline), encoding="utf-8")
    assert pipeline_file.read(file, {}) == pipeline


JUNK = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats()


@given(
    st.sampled_from(["model", "train_config", "train_input_reader", "eval_config"]),
    st.sampled_from(["anchors", "optimizer", "learning_rate", "input_path", "batch_size", "x"]),
    st.recursive(JUNK, lambda inner: st.dictionaries(st.text(max_size=5), inner, max_size=2)),
)
def test_any_input_is_accepted_or_refused_with_a_place(
    section: str, key: str, junk: object
) -> None:
    raw = base()
    raw.setdefault(section, {})[key] = junk
    try:
        Pipeline.model_validate(pipeline_file.with_tuples(raw), context={".": Path("/here")})
    except ValueError as error:
        found = pipeline_file.errors.found_by(error, Pipeline, {})
        assert found and all(problem.key_path.startswith(section) for problem in found)
        assert str(PipelineError("p.toml", found)).startswith("p.toml: ")
