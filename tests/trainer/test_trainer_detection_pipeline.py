"""Pipeline configurations: TOML, the classic form, overrides, and every problem at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainer.detection import pipeline_file
from trainer.detection.config_problems import PipelineError
from trainer.detection.pipeline import Pipeline
from trainer.detection.train_parts import ConstantRate, CosineRate, ExponentialRate, RmsProp

SMALLEST = """
[model]
num_classes = 3

[train_config]
num_steps = 100
learning_rate = { type = "constant", learning_rate = 0.1 }

[train_input_reader]
input_path = "train-*.tfrecord"
label_map_path = "{{ data }}/map.pbtxt"

[eval_input_reader]
input_path = ["a.tfrecord", "/b/c.tfrecord"]
label_map_path = "map.pbtxt"
"""
CLASSIC = """
model { ssd {
  num_classes: 10
  box_coder { faster_rcnn_box_coder { y_scale: 10.0 x_scale: 10.0 height_scale: 5 } }
  matcher { argmax_matcher { matched_threshold: 0.6 unmatched_threshold: 0.4
    ignore_thresholds: false force_match_for_each_row: true } }
  similarity_calculator { iou_similarity { } }
  anchor_generator { ssd_anchor_generator { num_layers: 6 min_scale: 0.2 max_scale: 0.95
    aspect_ratios: 1.0 aspect_ratios: 2.0 aspect_ratios: 0.3333 } }
  image_resizer { fixed_shape_resizer { height: 300 width: 300 } }
  box_predictor { convolutional_box_predictor { kernel_size: 1 box_code_size: 4 } }
  feature_extractor { type: 'ssd_mobilenet_v1' min_depth: 16 depth_multiplier: 0.75
    conv_hyperparams { activation: RELU_6, regularizer { l2_regularizer { weight: 0.00004 } }
      batch_norm { train: true, decay: 0.9997, epsilon: 0.001, } } }
  loss { classification_loss { weighted_sigmoid_focal { alpha: 0.5 } }
    localization_loss { weighted_smooth_l1 { } }
    hard_example_miner { num_hard_examples: 3000 max_negatives_per_positive: 3 }
    classification_weight: 1.0 localization_weight: 2.0 }
  post_processing { batch_non_max_suppression { score_threshold: 1e-8 iou_threshold: 0.6
    max_detections_per_class: 100 max_total_detections: 90 } score_converter: SIGMOID }
} }
train_config: {
  batch_size: 24
  optimizer { rms_prop_optimizer: { learning_rate: { exponential_decay_learning_rate {
      initial_learning_rate: 0.004 decay_steps: 800720 decay_factor: 0.95 } }
    momentum_optimizer_value: 0.8 decay: 0.9 epsilon: 1.0 } }
  fine_tune_checkpoint: "{{ data }}/model.ckpt"
  from_detection_checkpoint: false
  num_steps: 200000
  data_augmentation_options { random_horizontal_flip { } }
  data_augmentation_options { ssd_random_crop { } }
}
train_input_reader: {
  tf_record_input_reader { input_path: "one.record" input_path: "two.record" }
  label_map_path: "map.pbtxt"
}
eval_config: { num_examples: 8000 max_evals: 10 }
eval_input_reader: {
  tf_record_input_reader { input_path: "val.record" } label_map_path: "map.pbtxt"
  shuffle: false
}
"""
PLACES = {"data": Path("/data"), "output": Path("/output")}


def load(tmp_path: Path, text: str, name: str = "p.toml", *overrides: str) -> pipeline_file.Loaded:
    file = tmp_path / name
    file.write_text(text)
    return pipeline_file.load(file, PLACES, overrides)


def problems(tmp_path: Path, text: str, name: str = "p.toml", *overrides: str) -> dict[str, str]:
    """Place → value, rule and cure."""
    with pytest.raises(PipelineError) as found:
        load(tmp_path, text, name, *overrides)
    assert f"{name}: " in str(found.value)
    assert len({p.place for p in found.value.problems}) == len(found.value.problems)
    return {p.place: f"{p.value} | {p.rule} | {p.cure}" for p in found.value.problems}


def test_the_smallest_pipeline_gets_its_defaults_and_absolute_paths(tmp_path: Path) -> None:
    pipeline = load(tmp_path, SMALLEST).pipeline
    assert pipeline.model.feature_extractor == "mobilenet_v2"
    assert pipeline.train_config.learning_rate == ConstantRate(learning_rate=0.1)
    assert pipeline.train_input_reader.input_path == (f"{tmp_path}/train-*.tfrecord",)
    assert pipeline.train_input_reader.label_map_path == "/data/map.pbtxt"
    assert pipeline.eval_input_reader.input_path == (f"{tmp_path}/a.tfrecord", "/b/c.tfrecord")


def test_a_pipeline_cannot_be_changed(tmp_path: Path) -> None:
    pipeline = load(tmp_path, SMALLEST).pipeline
    with pytest.raises(ValueError, match="frozen"):
        pipeline.model.num_classes = 4
    assert isinstance(pipeline.model.anchors.aspect_ratios, tuple)


def test_overrides_are_laid_over_the_file(tmp_path: Path) -> None:
    pipeline = load(
        tmp_path,
        SMALLEST,
        "p.toml",
        "train_config.num_steps=7",
        "model.feature_extractor=mobilenet_v1",
        "model.anchors.aspect_ratios=[1.0, 3.0]",
        "train_config.learning_rate={type='cosine', learning_rate=0.5}",
    ).pipeline
    assert pipeline.train_config.num_steps == 7
    assert pipeline.model.feature_extractor == "mobilenet_v1"
    assert pipeline.model.anchors.aspect_ratios == (1.0, 3.0)
    assert pipeline.train_config.learning_rate == CosineRate(learning_rate=0.5)


def test_one_value_of_a_table_is_overridden_without_the_others(tmp_path: Path) -> None:
    rate = load(tmp_path, SMALLEST, "p.toml", "train_config.learning_rate.warmup_steps=5")
    expected = ConstantRate(learning_rate=0.1, warmup_steps=5)
    assert rate.pipeline.train_config.learning_rate == expected


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    for name, text in (("p.toml", SMALLEST), ("p.config", CLASSIC)):
        pipeline = load(tmp_path, text, name).pipeline
        copy = tmp_path / "elsewhere" / "copy.toml"
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(pipeline_file.to_toml(pipeline))
        assert pipeline_file.read(copy, {}) == pipeline


def test_a_schedule_of_steps_is_written_and_read_again(tmp_path: Path) -> None:
    steps = "[{step=10, learning_rate=0.1}, {step=20, learning_rate=0.01}]"
    rate = f"{{type='manual_step', learning_rate=1.0, schedule={steps}}}"
    pipeline = load(tmp_path, SMALLEST, "p.toml", f"train_config.learning_rate={rate}").pipeline
    assert [s.step for s in pipeline.train_config.learning_rate.schedule] == [10, 20]
    again = load(tmp_path, pipeline_file.to_toml(pipeline)).pipeline
    assert again == pipeline


def test_the_classic_form_gives_the_same_fields(tmp_path: Path) -> None:
    loaded = load(tmp_path, CLASSIC, "pipeline.config")
    model, train = loaded.pipeline.model, loaded.pipeline.train_config
    assert (model.num_classes, model.image_size) == (10, 300)
    assert (model.feature_extractor, model.depth_multiplier) == ("mobilenet_v1", 0.75)
    assert (model.batch_norm_momentum, model.l2_weight) == (0.9997, 4e-5)
    assert model.anchors.feature_strides == (16, 32, 64, 128, 256, 512)
    assert model.anchors.aspect_ratios == (1.0, 2.0, 0.3333)
    assert model.anchors.layer_scales == pytest.approx((0.2, 0.35, 0.5, 0.65, 0.8, 0.95))
    assert (model.matcher.matched_threshold, model.matcher.unmatched_threshold) == (0.6, 0.4)
    assert (model.loss.classification_loss, model.loss.focal_alpha) == ("focal", 0.5)
    assert model.loss.localization_weight == 2.0
    assert model.post_processing.max_total_detections == 90
    assert train.optimizer == RmsProp(momentum=0.8, decay=0.9, epsilon=1.0)
    assert train.learning_rate == ExponentialRate(
        learning_rate=0.004, decay_steps=800720, decay_factor=0.95
    )
    assert (train.fine_tune_checkpoint, train.fine_tune_checkpoint_type) == (
        "/data/model.ckpt",
        "classification",
    )
    assert train.augmentation.random_horizontal_flip == 0.5
    assert train.augmentation.random_crop.min_scale == 0.3
    assert loaded.pipeline.train_input_reader.input_path == (
        f"{tmp_path}/one.record",
        f"{tmp_path}/two.record",
    )
    assert loaded.pipeline.eval_config.num_examples == 8000


def test_what_has_no_effect_in_a_classic_pipeline_is_named_once_with_its_line(
    tmp_path: Path,
) -> None:
    aside = load(tmp_path, CLASSIC, "p.config").left_aside
    assert "line 7: model.ssd.similarity_calculator.iou_similarity" in aside
    assert "line 11: model.ssd.box_predictor" in aside
    assert "line 37: eval_config.max_evals" in aside
    assert len(aside) == len(set(aside))


def test_classic_learning_rates_by_hand_and_by_cosine(tmp_path: Path) -> None:
    start, end = CLASSIC.index("optimizer {"), CLASSIC.index("  fine_tune")
    by_hand = """optimizer { momentum_optimizer { learning_rate { manual_step_learning_rate {
      initial_learning_rate: 0.1 schedule { step: 10 learning_rate: 0.01 }
      schedule { step: 20 learning_rate: 0.001 } } } momentum_optimizer_value: 0.5 }
      use_moving_average: false }
    """
    train = load(tmp_path, CLASSIC[:start] + by_hand + CLASSIC[end:], "p.config").pipeline
    assert [(s.step, s.learning_rate) for s in train.train_config.learning_rate.schedule] == [
        (10, 0.01),
        (20, 0.001),
    ]
    assert train.train_config.optimizer.momentum == 0.5
    cosine = """optimizer { adam_optimizer { learning_rate { cosine_decay_learning_rate {
      learning_rate_base: 0.2 total_steps: 50 warmup_steps: 5 warmup_learning_rate: 0.1 } } } }
    """
    train = load(tmp_path, CLASSIC[:start] + cosine + CLASSIC[end:], "p.config").pipeline
    assert train.train_config.learning_rate == CosineRate(
        learning_rate=0.2, total_steps=50, warmup_steps=5, warmup_learning_rate=0.1
    )
    assert train.train_config.optimizer.type == "adam"


def test_every_problem_of_a_toml_file_is_said_at_once(tmp_path: Path) -> None:
    text = """
    [model]
    num_clases = 3
    feature_extractor = "mobilenet_v3"
    image_size = 16
    [model.anchors]
    feature_strides = [8, 12]
    aspect_ratios = "1"
    [train_config]
    num_steps = 1.5
    batch_size = true
    learning_rate = { type = "cosin", learning_rate = 0.1 }
    optimizer = { type = "rmsprop", momentm = 0.9, momentum = 1.5 }
    augmentation.random_crop = { min_scale = 0.8, max_scale = 0.5 }
    [train_input_reader]
    input_path = []
    label_map_path = "{{ dta }}/map.pbtxt"
    [extra]
    a = 1
    """
    found = problems(tmp_path, text, "p.toml", "no-value", "train_config.seed=-1")
    assert set(found) == {
        "override no-value",
        "model.num_classes",
        "model.num_clases",
        "model.feature_extractor",
        "model.image_size",
        "model.anchors.feature_strides[1]",
        "model.anchors.aspect_ratios",
        "train_config.num_steps",
        "train_config.batch_size",
        "train_config.seed",
        "train_config.learning_rate.type",
        "train_config.optimizer.momentm",
        "train_config.optimizer.momentum",
        "train_config.augmentation.random_crop",
        "train_input_reader.input_path",
        "train_input_reader.label_map_path",
        "eval_input_reader",
        "extra",
    }
    assert found["model.num_clases"] == "3 | no such key | did you mean `num_classes`?"
    assert found["train_config.optimizer.momentm"].endswith("did you mean `momentum`?")
    assert "known: {{ data }}, {{ output }}" in found["train_input_reader.label_map_path"]
    assert "must be one of 'constant'" in found["train_config.learning_rate.type"]
    assert found["train_config.augmentation.random_crop"].split(" | ")[1] == (
        "min_scale must not be above max_scale"
    )
    assert "must be a whole number" in found["train_config.batch_size"]


def test_problems_of_a_classic_file_are_said_with_its_lines_and_names(tmp_path: Path) -> None:
    text = (
        CLASSIC.replace("num_classes: 10", "num_classes: 0 num_clases: 3")
        .replace("width: 300", "width: 320")
        .replace("ssd_mobilenet_v1", "ssd_resnet")
        .replace("batch_size: 24", 'batch_size: "24"')
        .replace("ssd_random_crop", "random_rotation90")
        .replace("num_layers: 6", "num_layers: 9")
        .replace("decay_factor: 0.95", "decay_factor: 95")
    )
    found = problems(tmp_path, text, "p.config")
    assert any(p.startswith("line 3: model.ssd.num_clases") for p in found)
    assert "did you mean `num_classes`?" in found["line 3: model.ssd.num_clases"]
    assert "line 3: model.ssd.num_classes" in found
    width = "line 10: model.ssd.image_resizer.fixed_shape_resizer.width"
    assert found[width].startswith("320 | another value than line 10: ")
    assert "ssd_mobilenet_v2" in found["line 12: model.ssd.feature_extractor.type"]
    assert "line 23: train_config.batch_size" in found
    assert any(p.endswith("random_rotation90") for p in found)
    assert any(p.endswith("num_layers") for p in found)
    assert any(p.endswith("decay_factor") for p in found)


def test_another_kind_of_model_is_refused_once_and_not_field_by_field(tmp_path: Path) -> None:
    text = CLASSIC.replace("model { ssd {", "model { faster_rcnn {")
    found = problems(tmp_path, text, "p.config")
    assert found["line 2: model.faster_rcnn"] == " | not known here | known there: ssd"
    assert [place for place in found if "model" in place] == [
        "line 2: model.faster_rcnn",
        "model",
    ]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("p.toml", b"[model", "not valid TOML"),
        ("p.toml", b"\xff", "no text"),
        ("p.config", b"model {", "line 1: the file ends inside the block of line 1"),
        ("p.toml", b"model = 3", "must be a table"),
    ],
)
def test_what_is_no_pipeline_at_all(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PipelineError, match=said):
        pipeline_file.read(tmp_path / name, PLACES)


def test_a_pipeline_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"none.toml: cannot be read: No such file"):
        pipeline_file.read(tmp_path / "none.toml", PLACES)


def test_thresholds_strides_and_schedules_must_hang_together(tmp_path: Path) -> None:
    steps = "[{step=20, learning_rate=0.1}, {step=10, learning_rate=0.01}]"
    found = problems(
        tmp_path,
        SMALLEST,
        "p.toml",
        "model.matcher.unmatched_threshold=0.9",
        "model.anchors.feature_strides=[16, 8]",
        f"train_config.learning_rate={{type='manual_step', learning_rate=1.0, schedule={steps}}}",
    )
    assert "must not be above matched_threshold" in found["model.matcher"]
    assert "must rise from fine to coarse" in found["model.anchors"]
    assert "the steps of the schedule must rise" in found["train_config.learning_rate"]
    found = problems(tmp_path, SMALLEST, "p.toml", "model.anchors.scales=[0.1, 0.2]")
    assert "2 scales for 3 feature_strides" in found["model.anchors"]


def test_every_field_says_what_it_is() -> None:
    schema = Pipeline.model_json_schema()
    silent = [
        f"{name}.{key}"
        for name, part in schema["$defs"].items()
        for key, field in part.get("properties", {}).items()
        if "description" not in field and key not in ("type", "step")
    ]
    assert silent == ["RateStep.learning_rate"]


def test_the_sample_sets_own_pipeline_is_right() -> None:
    folder = Path(pipeline_file.__file__).parent / "scenes"
    pipeline = pipeline_file.read(folder / "pipeline.toml", PLACES)
    assert pipeline.model.num_classes == 10
