"""Commands on the pages of the documentation that no other test runs."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.commands import RUN, in_blocks
from tests.docs.markdown import all_pages
from tests.docs.run_by import RUN_BY
from tests.e2e.evidence import output
from tests.kit import Kit
from tests.make import ROOT

AS_INSTALLED = f'cluster-kit() {{ {shlex.quote(sys.executable)} -m cluster_kit "$@"; }}'
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
VOC = """<annotation><filename>one.jpg</filename>
<size><width>64</width><height>48</height><depth>3</depth></size>
<object><name>cat</name><difficult>0</difficult><bndbox>
<xmin>10</xmin><ymin>5</ymin><xmax>40</xmax><ymax>25</ymax></bndbox></object></annotation>"""


def picture(path: Path, shade: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (64, 48), (shade, 255 - shade, 99)).save(path)


def coco(folder: Path, file: str, images: str, count: int) -> None:
    """Write annotations of `count` images with one cat each, and the images."""
    for number in range(count):
        picture(folder / images / f"{number}.jpg", 20 * number)
    boxes = [
        {"id": n, "image_id": n, "category_id": 3, "bbox": [10, 5, 30, 20], "iscrowd": 0}
        for n in range(count)
    ]
    sizes = [{"id": n, "file_name": f"{n}.jpg", "width": 64, "height": 48} for n in range(count)]
    text = {"images": sizes, "annotations": boxes, "categories": [{"id": 3, "name": "cat"}]}
    (folder / file).write_text(json.dumps(text))


def test_the_converters_work_as_on_the_page(tmp_path: Path) -> None:
    coco(tmp_path, "instances_train.json", "train2017", 9)
    coco(tmp_path, "instances_val.json", "val2017", 2)
    voc = tmp_path / "VOC2012"
    picture(voc / "JPEGImages" / "one.jpg", 7)
    for name, text in (("Annotations/one.xml", VOC), ("ImageSets/Main/train.txt", "one\n")):
        (voc / name).parent.mkdir(parents=True)
        (voc / name).write_text(text)
    blocks = in_blocks(all_pages()["docs/detection.md"])
    script = [c.line for c in blocks if c.mark == RUN and c.line not in RUN_BY]
    assert len(script) == 3
    done = subprocess.run(
        ["bash", "-euc", "\n".join([AS_INSTALLED, *script])],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((tmp_path / "mine").glob("train-*-of-00008.tfrecord"))) == 8
    assert len(list((tmp_path / "mine").glob("validate-*.tfrecord"))) == 2
    assert "id: 3" in (tmp_path / "mine" / "label_map.pbtxt").read_text()
    assert len(list((tmp_path / "mine-voc").glob("train-*.tfrecord"))) == 1


def test_a_program_lists_its_arguments(kit: Kit) -> None:
    done = kit.run("up", "smoke", "--name", kit.name, "--args=--help", "--set", "evaluator=0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--learning-rates" in done.stdout + done.stderr


@pytest.mark.more
def test_mobilenet_trains_on_folders_of_images(kit: Kit, tmp_path: Path) -> None:
    chance = random.Random(1)
    for part, count in (("Train", 40), ("Validate", 4), ("Test", 4)):
        for number in range(count):
            name, shades = (("dark", (0, 80)), ("light", (170, 250)))[number % 2]
            picture(tmp_path / "images" / part / name / f"{number}.png", chance.randint(*shades))
    done = kit.run(
        *("up", "mobilenet", "--name", kit.name, "--data", str(tmp_path / "images")),
        *("--workers", "1", "--ps", "1", "--set", "evaluator=0"),
        "--args=--image-size 32 --batch-size 8 --epochs 1 --steps-per-epoch 2",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert kit.outcome()["metrics"]["updates"] == 2
    assert json.loads((output(kit) / "result.json").read_text())["classes"] == ["dark", "light"]


def test_class_folders_train_and_the_model_loads_as_on_the_page(kit: Kit, tmp_path: Path) -> None:
    chance = random.Random(1)
    for number in range(40):
        name, shades = (("rose", (0, 80)), ("tulip", (170, 250)))[number % 2]
        picture(tmp_path / "flowers" / name / f"{number}.jpg", chance.randint(*shades))
    done = kit.run(
        *("up", "quickstart", "--name", kit.name, "--data", str(tmp_path / "flowers")),
        *("--workers", "1", "--ps", "1", "--set", "evaluator=0"),
        "--args=--image-size 16 --epochs 2 --steps-per-epoch 10",
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    assert (
        "no Validate/ and Test/ in the data" in printed
        and "28 for Train, 6 for Validate" in printed
    )
    assert "the images are 64 x 48 (median of 28); use --image-size 48" in printed
    here = output(kit).parent.resolve()
    page = all_pages()["docs/built-in.md"]
    (example,) = (block.text for block in page.blocks if block.info == "python")
    (here / "classify.py").write_text(example)
    picture(here / "photo.jpg", 220)
    lines = [c.line for c in in_blocks(page) if "IMAGE" in c.line]
    assert len(lines) == 2
    loaded = subprocess.run(
        ["bash", "-euc", "\n".join([AS_INSTALLED, *lines])],
        cwd=here, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.splitlines()[-1].startswith("tulip ")
