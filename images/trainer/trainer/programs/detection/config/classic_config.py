"""The classic `pipeline.config` of the Object Detection API, translated to this pipeline's fields.

A field that exists here is moved to its place. A field without effect on this SSD is ignored, and
the reason is reported. Any other field is a problem, reported with its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from trainer.programs.detection.config.errors import Problem, nearest, short
from trainer.programs.detection.text_format import Message, Word

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
    """Returns a table of fields that have the same name in both forms."""
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
    **{f"{TRAIN}.optimizer.{name}.{k}": f"{TRAIN}.optimizer.{key_path}"
       for name, (_, fields) in OPTIMIZERS.items() for k, key_path in fields.items()},
    **{f"{TRAIN}.optimizer.{name}.learning_rate.{rate}.{k}": f"{TRAIN}.learning_rate.{key_path}"
       for name in OPTIMIZERS for rate, (_, fields) in RATES.items()
       for k, key_path in fields.items()},
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
"""Key paths that hold a list; a value is appended to it."""

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
"""Blocks whose mere presence sets a value: its key path and value, set before the block's
fields."""


def strides(layers: object) -> tuple[int, ...]:
    """Returns the strides of `layers` feature maps; ValueError if the number is invalid."""
    if not isinstance(layers, int) or not 1 <= layers <= len(STRIDES):
        raise ValueError(f"must be 1 to {len(STRIDES)}: feature maps of stride 16, 32, 64, …")
    return STRIDES[:layers]


def extractor(name: object) -> str:
    """Returns the backbone for a feature extractor's type; ValueError if the type is unknown."""
    known = {f"ssd_{kind}": kind for kind in ("mobilenet_v1", "mobilenet_v2")}
    plain = str(name).removesuffix("_keras")
    if plain not in known:
        raise ValueError(f"must be one of {', '.join(known)}")
    return known[plain]


def kind_of_start(kind: object) -> str:
    """Returns which part of a fine-tune checkpoint is loaded; ValueError if the type is unknown."""
    known = {"detection": "detection", "full": "detection", "classification": "classification"}
    if str(kind) not in known:
        raise ValueError(f"must be one of {', '.join(known)}")
    return known[str(kind)]


def around_one(least: object) -> float:
    """Returns half the width of a range around 1, from its lower end; ValueError if it is
    invalid."""
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
"""Keys whose values are converted; the function raises ValueError for an unknown value."""


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
    """Returns a mapping of each of `names` in the block `above` to the same reason."""
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
"""Fields that are reported with the reason, and ignored together with everything in them."""


@dataclass(frozen=True)
class Translated:
    """The tables as TOML would have them; `written` has the line and the name of each key in the
    file."""

    tables: dict[str, Any]
    written: Mapping[str, str] = field(default_factory=dict)
    left_aside: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A value of the file and its path, such as `model.ssd.num_classes`; the value of a block is
    {}."""

    path: str
    value: Any
    line: int

    @property
    def where(self) -> str:
        return f"line {self.line}: {self.path}"


class Translation:
    """Collects the result of `translate`, entry by entry."""

    def __init__(self) -> None:
        self.tables: dict[str, Any] = {}
        self.written: dict[str, str] = {}
        self.left_aside: dict[str, int] = {}
        self.problems: list[Problem] = []
        self.refused: set[str] = set()

    def add(self, entry: Entry) -> None:
        if entry.path in BLOCKS:
            key_path, value = BLOCKS[entry.path]
            self.put(key_path, value)
            self.written.setdefault(key_path.rpartition(".")[0], entry.where)
        elif entry.path in CHANGED:
            key_path, change = CHANGED[entry.path]
            try:
                self.take(entry, key_path, change(entry.value))
            except ValueError as problem:
                self.wrong(entry, str(problem), "change it, or write the pipeline as TOML")
        elif entry.path in FIELDS:
            self.take(entry, FIELDS[entry.path], entry.value)
        elif known := is_aside(entry.path):
            self.left_aside.setdefault(known, entry.line)
        elif entry.path not in self.refused:
            self.refused.add(entry.path)
            self.wrong(entry, "not known here", nearest_of(entry.path))

    def take(self, entry: Entry, key_path: str, value: Any) -> None:
        if key_path not in REPEATED and key_path in self.written and self.at(key_path) != value:
            rule = f"another value than {self.written[key_path]} = {short(self.at(key_path))}"
            self.wrong(entry, rule, "give both the same value")
            return
        if key_path in REPEATED:
            value = (*(self.at(key_path) or ()), value)
        self.put(key_path, value)
        self.written[key_path] = entry.where

    def at(self, key_path: str) -> Any:
        table: Any = self.tables
        for name in key_path.split("."):
            table = table.get(name) if isinstance(table, dict) else None
        return table

    def put(self, key_path: str, value: Any) -> None:
        *above, key = key_path.split(".")
        table = self.tables
        for name in above:
            table = table.setdefault(name, {})
        table[key] = value

    def wrong(self, entry: Entry, rule: str, hint: str) -> None:
        self.problems.append(Problem(entry.where, short(entry.value), rule, hint))


def translate(message: Message) -> Translated:
    """Return a classic configuration's fields by their names here, and the unusable fields."""
    translation = Translation()
    for entry in entries(message, ""):
        translation.add(entry)
    aside = tuple(
        f"line {line}: {path}: {ASIDE[path]}" for path, line in translation.left_aside.items()
    )
    return Translated(translation.tables, translation.written, aside, tuple(translation.problems))


def entries(message: Message, above: str) -> Iterator[Entry]:
    """Yields every value, and those blocks that are empty, unknown, or set a value by their
    presence.

    The contents of unknown blocks are omitted.
    """
    for item in message:
        path = f"{above}.{item.name}" if above else item.name
        match item.value:
            case Message() as block if path in FIELDS:
                yield Entry(path, {inner.name: inner.value for inner in block}, item.line)
            case Message() as block:
                unknown = path not in KNOWN and not is_aside(path)
                if path in BLOCKS or unknown or not block.fields:
                    yield Entry(path, {}, item.line)
                if not unknown:
                    yield from entries(block, path)
            case Word(text=text):
                yield Entry(path, text, item.line)
            case value:
                yield Entry(path, value, item.line)


def is_aside(path: str) -> str:
    """Returns the entry of ASIDE that is `path` or contains it; "" if there is none."""
    return next((known for known in ASIDE if f"{path}.".startswith(f"{known}.")), "")


def prefixes(path: str) -> Iterator[str]:
    """Yields `a`, `a.b` and `a.b.c` for `a.b.c`."""
    parts = path.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))


KNOWN = {part for path in (*FIELDS, *BLOCKS, *CHANGED, *ASIDE) for part in prefixes(path)}


def nearest_of(path: str) -> str:
    """Returns a hint with the keys that are valid in the same block."""
    above, _, name = path.rpartition(".")
    known = [p.rpartition(".")[2] for p in KNOWN if p.rpartition(".")[0] == above]
    return nearest(name, known, "known there")
