"""Fields of the classic `pipeline.config` that change nothing here, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from trainer.programs.detection.config.classic.fields import (
    ANCHORS,
    AUGMENT,
    EXTRACTOR,
    LOSS,
    MATCHER,
    OPTIMIZERS,
    READERS,
    SSD,
    TRAIN,
)

REWRITER = (
    "the graph is not rewritten: training with simulated quantization is not built in; model and"
    " checkpoints are float32 (quantize the saved model after training)"
)
HEAD = "each feature map is predicted from by one 3x3 convolution"
BACKBONE = "the backbone is the one of tf_keras, with its own kernels' initial values and BatchNorm"
CROP = "a crop here keeps boxes by train_config.augmentation.random_crop, in fixed measures"
ORDER = "records are always shuffled, repeated and read ahead as fast as the machine can"
SCORED = "the evaluator scores every checkpoint with COCO's mAP, each class for itself"


def because(reason: str, above: str, *names: str) -> dict[str, str]:
    """Each of `names` inside the block `above`, with one reason."""
    return {f"{above}.{name}": reason for name in names}


ASIDE: Mapping[str, str] = MappingProxyType({
    "graph_rewriter": REWRITER,
    "graph_rewriter_config": REWRITER,
    f"{SSD}.box_predictor": HEAD,
    f"{SSD}.similarity_calculator.iou_similarity": "anchors are always matched by IoU",
    **because("the loss always counts anchors so", SSD,
              "encode_background_as_zeros", "normalize_loss_by_num_matches",
              "normalize_loc_loss_by_codesize"),
    f"{SSD}.post_processing.score_converter": "the classification loss decides it",
    **because("BatchNorm is updated with each step, and never frozen", SSD,
              "inplace_batchnorm_update", "freeze_batchnorm"),
    f"{ANCHORS}.reduce_boxes_in_lowest_layer": "every feature map has the same anchors in a cell",
    **because("between the two thresholds an anchor always counts as neither", MATCHER,
              "ignore_thresholds", "negatives_lower_than_unmatched"),
    f"{MATCHER}.use_matmul_gather": "the result is the same",
    **because(BACKBONE, EXTRACTOR, "min_depth", "use_depthwise", "conv_hyperparams",
              "override_base_feature_extractor_hyperparams"),
    f"{LOSS}.classification_loss.weighted_sigmoid": "softmax with a background class is used",
    f"{LOSS}.localization_loss.weighted_smooth_l1": "smooth L1 is the only one there is",
    f"{LOSS}.hard_example_miner":
        "negatives are counted for each image, by max_negatives_per_positive",
    **{f"{TRAIN}.optimizer.{name}.learning_rate.manual_step_learning_rate.warmup":
       "the rate rises if warmup_steps is above 0" for name in OPTIMIZERS},
    **because("min_delta decides, upwards as much", AUGMENT,
              "random_adjust_contrast.max_delta", "random_adjust_saturation.max_delta"),
    **because(CROP, AUGMENT, "ssd_random_crop", "random_crop_image"),
    f"{TRAIN}.load_all_detection_checkpoint_vars": "all that fit by name and shape are taken",
    f"{TRAIN}.fine_tune_checkpoint_version": "both versions are read",
    f"{TRAIN}.unpad_groundtruth_tensors": "padding never counts in the loss",
    f"{TRAIN}.use_bfloat16": "variables and gradients are float32",
    **{f"{reader}.{name}": ORDER for reader in READERS
       for name in ("shuffle", "shuffle_buffer_size", "num_readers", "num_epochs", "queue_capacity",
                    "min_after_dequeue", "sample_1_of_n_examples")},
    **{f"{reader}.max_number_of_boxes": "train_config.max_number_of_boxes decides"
       for reader in READERS},
    **because(SCORED, "eval_config", "max_evals", "metrics_set", "eval_interval_secs",
              "include_metrics_per_category", "max_num_boxes_to_visualize"),
})  # fmt: skip
"""Said with the reason, and left aside, with all that is in them."""
