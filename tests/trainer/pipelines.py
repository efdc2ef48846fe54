"""Pipeline configurations for tests, as TOML and in the classic form."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.programs.detection.config import pipeline_file
from trainer.programs.detection.config.errors import PipelineError

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
    """Returns key path → value, rule and hint of each problem."""
    with pytest.raises(PipelineError) as found:
        load(tmp_path, text, name, *overrides)
    assert f"{name}: " in str(found.value)
    assert len({p.key_path for p in found.value.problems}) == len(found.value.problems)
    return {p.key_path: f"{p.value} | {p.rule} | {p.hint}" for p in found.value.problems}
