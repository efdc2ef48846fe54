"""MobileNetV2 as in compose/mobilenet.toml: 224 pixels, 30 classes, a global batch of 64."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.e2e.evidence import codes, events, output
from tests.kit import Kit

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
CLASSES = 30
COUNTS = {"Train": 8, "Validate": 2, "Test": 1}
"""Images of each class."""
STEPS = 6


def draw(folder: Path) -> None:
    """Draw images with the sizes of JPEG photos; each class has a different colour, with noise."""
    chance = random.Random(1)
    for part, count in COUNTS.items():
        for number in range(CLASSES):
            target = folder / part / f"class-{number:02d}"
            target.mkdir(parents=True)
            colour = tuple(int(number * step) % 256 for step in (8.5, 37, 101))
            for index in range(count):
                image = Image.effect_noise((256, 240), chance.randint(20, 60)).convert("RGB")
                Image.blend(image, Image.new("RGB", image.size, colour), 0.7).save(
                    target / f"{index}.jpg"
                )


@pytest.mark.slow
def test_mobilenet_trains_at_its_real_sizes(kit: Kit, tmp_path: Path) -> None:
    draw(tmp_path / "images")
    done = kit.run(
        *("up", "mobilenet", "--name", kit.name, "--data", str(tmp_path / "images")),
        f"--args=--epochs 1 --steps-per-epoch {STEPS}",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    metrics = kit.outcome()["metrics"]
    assert metrics["updates"] == STEPS
    assert set(codes(kit).values()) == {0}
    result = json.loads((output(kit) / "result.json").read_text())
    assert len(result["classes"]) == CLASSES
    assert events(kit, "evaluator-0", "evaluation")
    assert (output(kit) / "model" / "saved_model.pb").exists()
    print(json.dumps({"metrics": metrics, "seconds": kit.outcome()["timings_s"]}, indent=1))
