"""Pipeline configurations in the classic form: the same fields, and fields without effect."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipelines import CLASSIC, load, problems

from trainer.programs.detection.config.pipeline import CosineRate, ExponentialRate, RmsProp


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


def test_fields_without_effect_are_reported_once_with_their_line(
    tmp_path: Path,
) -> None:
    aside = load(tmp_path, CLASSIC, "p.config").left_aside
    reasons = dict(line.rsplit(": ", 1) for line in aside)
    assert reasons["line 7: model.ssd.similarity_calculator.iou_similarity"] == (
        "anchors are always matched by IoU"
    )
    assert "one 3x3 convolution" in reasons["line 11: model.ssd.box_predictor"]
    assert "every checkpoint" in reasons["line 37: eval_config.max_evals"]
    assert len(aside) == len(set(aside)) and all(reasons.values())


@pytest.mark.parametrize("block", ["graph_rewriter", "graph_rewriter_config"])
def test_a_graph_rewriter_is_ignored_with_the_reason(tmp_path: Path, block: str) -> None:
    text = CLASSIC + block + " { quantization { delay: 48000 weight_bits: 8 activation_bits: 8 } }"
    (line,) = (output for output in load(tmp_path, text, "p.config").left_aside if block in output)
    assert line.startswith(f"line 42: {block}: ") and "not rewritten" in line


def test_the_zoos_fields_of_updates_and_averages_are_used(tmp_path: Path) -> None:
    text = CLASSIC.replace(
        "batch_size: 24",
        "batch_size: 24 sync_replicas: true replicas_to_aggregate: 8 startup_delay_steps: 15.0"
        ' fine_tune_checkpoint_version: V2 fine_tune_checkpoint_type: "full"',
    ).replace("from_detection_checkpoint: false", "").replace(
        "epsilon: 1.0 } }",
        "epsilon: 1.0 } use_moving_average: true moving_average_decay: 0.99 }",
    ).replace("ssd_mobilenet_v1", "ssd_mobilenet_v1_keras")  # fmt: skip
    pipeline = load(tmp_path, text, "p.config").pipeline
    train = pipeline.train_config
    assert (train.sync_replicas, train.replicas_to_aggregate) == (True, 8)
    assert train.startup_delay_steps == 15.0
    assert train.fine_tune_checkpoint_type == "detection"
    assert (train.optimizer.use_moving_average, train.optimizer.moving_average_decay) == (
        True,
        0.99,
    )
    assert pipeline.model.feature_extractor == "mobilenet_v1"
    assert pipeline.averaged
    raw = text.replace("max_evals: 10", "use_moving_averages: false")
    assert not load(tmp_path, raw, "p.config").pipeline.averaged


def test_averages_that_the_optimizer_does_not_keep_cannot_be_scored(tmp_path: Path) -> None:
    text = CLASSIC.replace("max_evals: 10", "use_moving_averages: true")
    (output,) = problems(tmp_path, text, "p.config").values()
    assert "the optimizer keeps none" in output and "use_moving_average = true" in output


def test_classic_learning_rates_manual_and_cosine(tmp_path: Path) -> None:
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


def test_problems_of_a_classic_file_have_its_lines_and_names(tmp_path: Path) -> None:
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
