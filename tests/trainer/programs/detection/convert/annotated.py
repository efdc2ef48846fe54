"""Images with annotations in COCO's and Pascal VOC's formats."""

from __future__ import annotations

import io
import json
from pathlib import Path

from PIL import Image

from trainer.programs.detection.convert.sources import Source, labelled

WIDTH, HEIGHT = 40, 20


def picture(form: str = "PNG", size: tuple[int, int] = (WIDTH, HEIGHT)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, (10, 200, 30)).save(file, form)
    return file.getvalue()


def coco_file(tmp_path: Path, **changes: object) -> Path:
    """Write two images, one without objects; `changes` replace whole lists."""
    (tmp_path / "images").mkdir(exist_ok=True)
    (tmp_path / "images" / "a.png").write_bytes(picture())
    (tmp_path / "images" / "b.jpg").write_bytes(picture("JPEG"))
    content = {
        "images": [
            {"id": 7, "file_name": "a.png", "height": HEIGHT, "width": WIDTH},
            {"id": 8, "file_name": "b.jpg"},
        ],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 3, "bbox": [10, 5, 20, 10], "iscrowd": 0},
            {"id": 2, "image_id": 7, "category_id": 1, "bbox": [0, 0, 40.4, 20], "iscrowd": 1},
        ],
        "categories": [{"id": 1, "name": "cat"}, {"id": 3, "name": "dog"}],
        **changes,
    }
    file = tmp_path / "instances.json"
    file.write_text(json.dumps(content))
    return file


def voc_directory(tmp_path: Path) -> Path:
    root = tmp_path / "VOC"
    for folder in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name, label, difficult in (("one", "dog", 0), ("two", "cat", 1)):
        (root / "JPEGImages" / f"{name}.jpg").write_bytes(picture("JPEG"))
        (root / "Annotations" / f"{name}.xml").write_text(
            f"<annotation><filename>{name}.jpg</filename>"
            f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
            f"<object><name>{label}</name><difficult>{difficult}</difficult><bndbox>"
            "<xmin>11</xmin><ymin>6</ymin><xmax>30</xmax><ymax>15</ymax></bndbox>"
            "<part><name>head</name><bndbox><xmin>1</xmin></bndbox></part></object></annotation>"
        )
    (root / "ImageSets" / "Main" / "train.txt").write_text("one\n\n")
    return root


def all_problems(source: Source) -> list[str]:
    wrong = list(source.problems)
    for image in source.images:
        wrong += labelled(image, source.labels)[1]
    return wrong
