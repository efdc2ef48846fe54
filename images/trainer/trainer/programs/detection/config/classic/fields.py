"""Which field of the classic `pipeline.config` is which place here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SSD = "model.ssd"
ANCHORS = f"{SSD}.anchor_generator.ssd_anchor_generator"
MATCHER = f"{SSD}.matcher.argmax_matcher"
CODER = f"{SSD}.box_coder.faster_rcnn_box_coder"
RESIZER = f"{SSD}.image_resizer.fixed_shape_resizer"
EXTRACTOR = f"{SSD}.feature_extractor"
LOSS = f"{SSD}.loss"
FOCAL = f"{LOSS}.classification_loss.weighted_sigmoid_focal"
NMS = f"{SSD}.post_processing.batch_non_max_suppression"
TRAIN = "train_config"
AUGMENT = f"{TRAIN}.data_augmentation_options"
STRIDES = (16, 32, 64, 128, 256, 512)


def same(*names: str) -> dict[str, str]:
    """A table for fields that have the same name in both forms."""
    return {name: name for name in names}


WARM_UP = same("warmup_learning_rate", "warmup_steps")
BURN_IN = {
    "initial_learning_rate": "learning_rate",
    "burnin_learning_rate": "warmup_learning_rate",
    "burnin_steps": "warmup_steps",
}
RATES: dict[str, tuple[str, dict[str, str]]] = {
    "constant_learning_rate": ("constant", {**same("learning_rate"), **WARM_UP}),
    "exponential_decay_learning_rate": (
        "exponential",
        {**BURN_IN, **same("decay_steps", "decay_factor", "staircase")},
    ),
    "cosine_decay_learning_rate": (
        "cosine",
        {"learning_rate_base": "learning_rate", **WARM_UP, **same("total_steps")},
    ),
    "manual_step_learning_rate": (
        "manual_step",
        {"initial_learning_rate": "learning_rate", **WARM_UP},
    ),
}
OPTIMIZERS: dict[str, tuple[str, dict[str, str]]] = {
    "momentum_optimizer": ("momentum", {"momentum_optimizer_value": "momentum"}),
    "rms_prop_optimizer": (
        "rmsprop",
        {"momentum_optimizer_value": "momentum", **same("decay", "epsilon")},
    ),
    "adam_optimizer": ("adam", same("epsilon")),
}
READERS = ("train_input_reader", "eval_input_reader")

FIELDS: dict[str, str] = {
    f"{SSD}.num_classes": "model.num_classes",
    f"{EXTRACTOR}.type": "model.feature_extractor",
    f"{EXTRACTOR}.depth_multiplier": "model.depth_multiplier",
    f"{EXTRACTOR}.conv_hyperparams.regularizer.l2_regularizer.weight": "model.l2_weight",
    f"{EXTRACTOR}.conv_hyperparams.batch_norm.decay": "model.batch_norm_momentum",
    f"{RESIZER}.height": "model.image_size",
    f"{RESIZER}.width": "model.image_size",
    **{f"{CODER}.{k}": f"model.box_coder.{k}" for k in (
        "y_scale", "x_scale", "height_scale", "width_scale")},
    **{f"{MATCHER}.{k}": f"model.matcher.{k}" for k in (
        "matched_threshold", "unmatched_threshold", "force_match_for_each_row")},
    **{f"{ANCHORS}.{k}": f"model.anchors.{k}" for k in (
        "min_scale", "max_scale", "scales", "aspect_ratios", "interpolated_scale_aspect_ratio")},
    **{f"{LOSS}.{k}": f"model.loss.{k}" for k in (
        "classification_weight", "localization_weight")},
    **{f"{LOSS}.hard_example_miner.{k}": f"model.loss.{k}" for k in (
        "max_negatives_per_positive", "min_negatives_per_image")},
    f"{FOCAL}.alpha": "model.loss.focal_alpha",
    f"{FOCAL}.gamma": "model.loss.focal_gamma",
    **{f"{NMS}.{k}": f"model.post_processing.{k}" for k in (
        "score_threshold", "iou_threshold", "max_detections_per_class", "max_total_detections")},
    **{f"{TRAIN}.{k}": f"{TRAIN}.{k}" for k in (
        "batch_size", "num_steps", "loss_threshold", "fine_tune_checkpoint", "max_number_of_boxes",
        "gradient_clipping_by_norm", "seed", "sync_replicas", "replicas_to_aggregate",
        "startup_delay_steps")},
    **{f"{TRAIN}.optimizer.{k}": f"{TRAIN}.optimizer.{k}" for k in (
        "use_moving_average", "moving_average_decay")},
    **{f"{TRAIN}.optimizer.{name}.use_moving_average": f"{TRAIN}.optimizer.use_moving_average"
       for name in OPTIMIZERS},
    **{f"{TRAIN}.optimizer.{name}.{k}": f"{TRAIN}.optimizer.{place}"
       for name, (_, fields) in OPTIMIZERS.items() for k, place in fields.items()},
    **{f"{TRAIN}.optimizer.{name}.learning_rate.{rate}.{k}": f"{TRAIN}.learning_rate.{place}"
       for name in OPTIMIZERS for rate, (_, fields) in RATES.items()
       for k, place in fields.items()},
    **{f"{TRAIN}.optimizer.{name}.learning_rate.manual_step_learning_rate.schedule":
       f"{TRAIN}.learning_rate.schedule" for name in OPTIMIZERS},
    f"{AUGMENT}.random_horizontal_flip.probability": f"{TRAIN}.augmentation.random_horizontal_flip",
    f"{AUGMENT}.random_adjust_brightness.max_delta": f"{TRAIN}.augmentation.brightness",
    f"{AUGMENT}.random_adjust_hue.max_delta": f"{TRAIN}.augmentation.hue",
    **{f"eval_config.{k}": f"eval_config.{k}" for k in (
        "batch_size", "num_examples", "num_visualizations", "min_score_threshold",
        "use_moving_averages")},
    **{f"{reader}.tf_record_input_reader.input_path": f"{reader}.input_path"
       for reader in READERS},
    **{f"{reader}.label_map_path": f"{reader}.label_map_path" for reader in READERS},
}  # fmt: skip
REPEATED = frozenset(
    (
        "model.anchors.scales",
        "model.anchors.aspect_ratios",
        f"{TRAIN}.learning_rate.schedule",
        *(f"{reader}.input_path" for reader in READERS),
    )
)
"""Places that hold a list; a value is added to it."""

BLOCKS: dict[str, tuple[str, Any]] = {
    f"{LOSS}.classification_loss.weighted_softmax": ("model.loss.classification_loss", "softmax"),
    FOCAL: ("model.loss.classification_loss", "focal"),
    **{f"{TRAIN}.optimizer.{name}": (f"{TRAIN}.optimizer.type", kind)
       for name, (kind, _) in OPTIMIZERS.items()},
    **{f"{TRAIN}.optimizer.{name}.learning_rate.{rate}": (f"{TRAIN}.learning_rate.type", kind)
       for name in OPTIMIZERS for rate, (kind, _) in RATES.items()},
    f"{AUGMENT}.random_horizontal_flip": (f"{TRAIN}.augmentation.random_horizontal_flip", 0.5),
    f"{AUGMENT}.random_adjust_brightness": (f"{TRAIN}.augmentation.brightness", 0.2),
    f"{AUGMENT}.random_adjust_contrast": (f"{TRAIN}.augmentation.contrast", 0.2),
    f"{AUGMENT}.random_adjust_saturation": (f"{TRAIN}.augmentation.saturation", 0.2),
    f"{AUGMENT}.random_adjust_hue": (f"{TRAIN}.augmentation.hue", 0.02),
    **{f"{AUGMENT}.{name}": (
        f"{TRAIN}.augmentation.random_crop",
        {"probability": 0.85, "min_scale": 0.3, "max_scale": 1.0, "max_aspect_change": 1.4},
    ) for name in ("ssd_random_crop", "random_crop_image")},
}  # fmt: skip
"""Blocks whose presence means something: the place and its value, before what is inside."""


def strides(layers: object) -> tuple[int, ...]:
    """Strides of the feature maps, from their number; ValueError if it is invalid."""
    if not isinstance(layers, int) or not 1 <= layers <= len(STRIDES):
        raise ValueError(f"must be 1 to {len(STRIDES)}: feature maps of stride 16, 32, 64, …")
    return STRIDES[:layers]


def extractor(name: object) -> str:
    """The backbone that a feature extractor's type means; ValueError if it is unknown."""
    known = {f"ssd_{kind}": kind for kind in ("mobilenet_v1", "mobilenet_v2")}
    plain = str(name).removesuffix("_keras")
    if plain not in known:
        raise ValueError(f"must be one of {', '.join(known)}")
    return known[plain]


def kind_of_start(kind: object) -> str:
    """What of a fine-tune checkpoint is taken; ValueError if it is unknown."""
    known = {"detection": "detection", "full": "detection", "classification": "classification"}
    if str(kind) not in known:
        raise ValueError(f"must be one of {', '.join(known)}")
    return known[str(kind)]


def around_one(least: object) -> float:
    """A range's half width, from its lower end below 1; ValueError if it is invalid."""
    if not isinstance(least, float) or not 0 < least <= 1:
        raise ValueError("must be above 0 and at most 1")
    return round(1 - least, 6)


CHANGED: dict[str, tuple[str, Callable[[object], Any]]] = {
    f"{ANCHORS}.num_layers": ("model.anchors.feature_strides", strides),
    f"{EXTRACTOR}.type": ("model.feature_extractor", extractor),
    f"{TRAIN}.fine_tune_checkpoint_type": (f"{TRAIN}.fine_tune_checkpoint_type", kind_of_start),
    f"{TRAIN}.from_detection_checkpoint": (
        f"{TRAIN}.fine_tune_checkpoint_type",
        lambda detector: "detection" if detector is True else "classification",
    ),
    f"{AUGMENT}.random_adjust_contrast.min_delta": (f"{TRAIN}.augmentation.contrast", around_one),
    f"{AUGMENT}.random_adjust_saturation.min_delta": (
        f"{TRAIN}.augmentation.saturation",
        around_one,
    ),
}
"""Places whose value is another one here. ValueError: the value is none of those known."""
