"""Users' images: the supported layouts, how they are divided, and sizes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from trainer.agent.errors import ContractError
from trainer.programs.classifier import image_files
from trainer.programs.classifier.image_files import TEST, TRAIN, VALIDATE

PNG = b"\x89PNG\r\n\x1a\n"
PARTS = (TRAIN, VALIDATE, TEST)


def png(width: int, height: int) -> bytes:
    return PNG + struct.pack(">I4sII", 13, b"IHDR", width, height)


def jpeg(width: int, height: int) -> bytes:
    """Returns a JPEG with what cameras put before the size: a long segment, and fill bytes."""
    segment = b"\xff\xe1" + struct.pack(">H", 302) + b"\xff\xc0" * 150
    frame = b"\xff\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 3)
    return b"\xff\xd8" + segment + frame


def fill(folder: Path, count: int, content: bytes = PNG) -> None:
    folder.mkdir(parents=True)
    for index in range(count):
        (folder / f"{index}.png").write_bytes(content)


@pytest.fixture
def flowers(tmp_path: Path) -> Path:
    data = tmp_path / "flowers"
    fill(data / "rose", 20)
    fill(data / "tulip", 10)
    (data / "LICENSE.txt").touch()
    (data / ".cache").mkdir()
    return data


def read(data: Path, seed: int = 1) -> dict[str, image_files.Split]:
    classes = image_files.class_names(data)
    return {part: image_files.split(data, part, classes, seed) for part in PARTS}


def test_plain_class_folders_are_divided_by_class(flowers: Path) -> None:
    assert image_files.class_names(flowers) == ("rose", "tulip")
    found = read(flowers)
    counts = {
        part: [split.labels.count(label) for label in (0, 1)] for part, split in found.items()
    }
    assert counts == {TRAIN: [14, 6], VALIDATE: [3, 2], TEST: [3, 2]}
    together = [path for split in found.values() for path in split.paths]
    assert len(set(together)) == len(together) == 30
    for split in found.values():
        assert all(flowers / ("rose", "tulip")[label] == Path(path).parent
                   for path, label in zip(split.paths, split.labels, strict=True))  # fmt: skip
    told = image_files.told(flowers, {part: len(s.paths) for part, s in found.items()}, 1)
    assert told == (
        "no Validate/ and Test/ in the data: 15% of each class are kept from training for each,"
        " chosen by --seed 1: 20 for Train, 5 for Validate, 5 for Test"
    )


def test_all_tasks_divide_the_images_in_the_same_way_and_another_seed_differently(
    flowers: Path,
) -> None:
    assert read(flowers) == read(flowers)
    assert read(flowers, seed=2) != read(flowers)
    moved = flowers.rename(flowers.with_name("elsewhere"))
    names = {part: [Path(path).name for path in split.paths] for part, split in read(moved).items()}
    moved.rename(flowers)
    assert names == {p: [Path(path).name for path in s.paths] for p, s in read(flowers).items()}


@pytest.mark.parametrize(
    ("there", "taken"), [("Validate", TEST), ("TEST", VALIDATE), ("val", TEST)]
)
def test_only_a_part_without_a_folder_is_taken_from_train(
    tmp_path: Path, there: str, taken: str
) -> None:
    for name in ("cat", "dog"):
        fill(tmp_path / "train" / name, 20)
        fill(tmp_path / there / name, 4)
    found = read(tmp_path)
    assert {part: len(split.paths) for part, split in found.items()} == {
        TRAIN: 34, taken: 6, ({VALIDATE, TEST} - {taken}).pop(): 8
    }  # fmt: skip
    assert image_files.told(tmp_path, {TRAIN: 34, taken: 6}, 1).startswith(
        f"no {taken}/ in the data: "
    )


def test_nothing_is_printed_about_parts_that_have_folders(tmp_path: Path) -> None:
    for part in PARTS:
        for name in ("cat", "dog"):
            fill(tmp_path / part / name, 2)
    assert image_files.told(tmp_path, {}, 1) == ""
    assert [len(split.paths) for split in read(tmp_path).values()] == [4, 4, 4]


def test_data_that_cannot_be_divided_is_reported(flowers: Path) -> None:
    fill(flowers / "violet", 2)
    with pytest.raises(ContractError, match=r"violet holds 2 images: too few .* add images"):
        read(flowers)
    for file in (flowers / "violet").iterdir():
        file.unlink()
    with pytest.raises(ContractError, match="violet holds no image"):
        read(flowers)


def test_folders_of_parts_without_train_are_no_classes(tmp_path: Path) -> None:
    for part in ("Trian", "Validate", "Test"):
        fill(tmp_path / part / "cat", 2)
    with pytest.raises(ContractError, match=r"has Test/, but no Train/; the layout is"):
        read(tmp_path)


@pytest.mark.parametrize("head", [png, jpeg])
def test_the_size_is_read_from_the_header(tmp_path: Path, head) -> None:
    (tmp_path / "one").write_bytes(head(640, 480))
    assert image_files.size_of(str(tmp_path / "one")) == (640, 480)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xd8", PNG, b"GIF89a", jpeg(9, 9)[:-6], b"\xff" * 9]
)
def test_a_header_without_a_size_gives_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "one").write_bytes(content)
    assert image_files.size_of(str(tmp_path / "one")) is None
    assert image_files.remark([str(tmp_path / "one")], 8) == ""


@pytest.mark.parametrize(
    ("size", "image_size", "proposed"),
    [((64, 64), 8, 64), ((64, 48), 32, 48), ((64, 64), 64, 0), ((64, 64), 50, 0), ((8, 8), 224, 0),
     ((4000, 3000), 96, 224), ((4000, 3000), 224, 0)],
)  # fmt: skip
def test_a_warning_is_printed_if_most_of_an_image_is_discarded(
    tmp_path: Path, size: tuple[int, int], image_size: int, proposed: int
) -> None:
    paths = [tmp_path / f"{index}.png" for index in range(5)]
    for path in paths:
        path.write_bytes(png(*size))
    output = image_files.remark([str(path) for path in paths], image_size)
    assert bool(output) == bool(proposed)
    if proposed:
        assert output.startswith(f"warning: --image-size {image_size} leaves {image_size**2:,} of")
        assert f"use --image-size {proposed}," in output
        assert f"{size[0]} x {size[1]} (median of 5)" in output
