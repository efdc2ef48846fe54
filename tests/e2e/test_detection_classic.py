"""The Object Detection API's command line and pipeline, in real containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.evidence import output
from tests.e2e.scenes import copy_of_the_scenes
from tests.kit import Kit

CLASSIC = """
model { ssd { num_classes: 10
  anchor_generator { ssd_anchor_generator { num_layers: 2 min_scale: 0.17 max_scale: 0.3
    aspect_ratios: 0.8 aspect_ratios: 0.5 } }
  image_resizer { fixed_shape_resizer { height: 64 width: 64 } }
  feature_extractor { type: 'ssd_mobilenet_v1' depth_multiplier: 0.25 }
  loss { classification_loss { weighted_softmax { } } }
} }
train_config {
  batch_size: 4 num_steps: 24 sync_replicas: false startup_delay_steps: 8 max_number_of_boxes: 8
  optimizer { adam_optimizer { learning_rate { constant_learning_rate { learning_rate: 0.001 } } }
    use_moving_average: true moving_average_decay: 0.9 }
}
train_input_reader {
  tf_record_input_reader { input_path: 'train-*.tfrecord' } label_map_path: 'label_map.pbtxt' }
eval_config { num_examples: 20 use_moving_averages: true }
eval_input_reader {
  tf_record_input_reader { input_path: 'validate-*.tfrecord' } label_map_path: 'label_map.pbtxt' }
graph_rewriter { quantization { delay: 48000 weight_bits: 8 activation_bits: 8 } }
"""


@pytest.mark.more
def test_the_classic_command_line_trains_to_its_train_directory(kit: Kit, tmp_path: Path) -> None:
    data = copy_of_the_scenes(tmp_path)
    (data / "pipeline.config").write_text(CLASSIC)
    classic = (
        "--logtostderr --train_dir=ssd --pipeline_config_path=pipeline.config --clone_on_cpu=true"
        " --type={{ role }} --task={{ index }} --worker_replicas={{ num_replicas }} --ps_tasks=1"
    )
    done = kit.run(
        *("up", "detection-async", "--name", kit.name, "--workers", "1", "--data", str(data)),
        *(f"--args={classic}", "--set", "evaluator=0"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    metrics = kit.outcome()["metrics"]
    assert 24 <= metrics["updates"] <= 25 and metrics["mode"] == "async"
    assert metrics["steps_of_worker-0"] <= metrics["updates"] - 8
    printed = done.stdout + done.stderr
    assert "graph_rewriter: the graph is not rewritten" in printed
    train_directory = output(kit) / "ssd"
    assert "use_moving_average = true" in (train_directory / "pipeline.toml").read_text()
    for kept in ("model/saved_model.pb", "result.json", "checkpoints/model.ckpt-24.index"):
        assert list(train_directory.glob(kept.replace("24", "2[45]"))), kept
