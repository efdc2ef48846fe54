"""A detection data set that a small model learns in a minute: bright squares on dark noise."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.kit import Kit

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
SIDE = 48
COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60)}
PIPELINE = """
[model]
num_classes = 2
feature_extractor = "{extractor}"
depth_multiplier = 0.25
image_size = 48
batch_norm_momentum = 0.8
[model.anchors]
feature_strides = [8, 16]
scales = [0.35, 0.5]
aspect_ratios = [1.0]
[model.matcher]
matched_threshold = 0.5
unmatched_threshold = 0.4
[train_config]
batch_size = 8
max_number_of_boxes = 2
optimizer = { type = "adam" }
learning_rate = { type = "constant", learning_rate = 4e-3 }
[train_input_reader]
input_path = "train-*.tfrecord"
label_map_path = "label_map.pbtxt"
[eval_input_reader]
input_path = "validate-*.tfrecord"
label_map_path = "label_map.pbtxt"
[eval_config]
batch_size = 40
"""


def draw(folder: Path, part: str, count: int) -> None:
    """Draw `count` images with one square in one colour each, and their annotations in COCO's
    form."""
    chance = random.Random(part)
    (folder / part).mkdir(parents=True)
    images, boxes = [], []
    for number in range(count):
        image = Image.effect_noise((SIDE, SIDE), 20).point(lambda shade: shade // 3).convert("RGB")
        kind = number % len(COLOURS)
        side = chance.randint(16, 26)
        left, top = (chance.randint(0, SIDE - side) for _ in "xy")
        image.paste(list(COLOURS.values())[kind], (left, top, left + side, top + side))
        image.save(folder / part / f"{number}.png")
        images.append({"id": number, "file_name": f"{number}.png", "width": SIDE, "height": SIDE})
        boxes.append({"id": number, "image_id": number, "category_id": kind + 1, "iscrowd": 0,
                      "bbox": [left, top, side, side]})  # fmt: skip
    names = [{"id": number, "name": name} for number, name in enumerate(COLOURS, 1)]
    text = {"images": images, "annotations": boxes, "categories": names}
    (folder / f"{part}.json").write_text(json.dumps(text))


def made(kit: Kit, extractor: str) -> None:
    """Make the data directory `squares` in the workspace; the kit itself converts it."""
    folder, data = kit.root, kit.root / "squares"
    for part, count in (("train", 160), ("validate", 40)):
        draw(folder / "drawn", part, count)
        done = kit.run(
            *("data", "convert", "coco", str(folder / "drawn" / f"{part}.json")),
            *(str(folder / "drawn" / part), "--to", str(data), "--name", part),
        )
        assert done.returncode == 0, done.stdout + done.stderr
    (data / "pipeline.toml").write_text(PIPELINE.replace("{extractor}", extractor))
