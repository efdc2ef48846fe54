"""The classifier without TensorFlow: arguments, class folders, checkpoints by name."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from trainer.agent.errors import ContractError
from trainer.programs.classifier import checkpoints, image_files, options

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for split in ("Train", "Validate", "Test"):
        for name in ("cat", "dog"):
            folder = tmp_path / "data" / split / name
            folder.mkdir(parents=True)
            for index in range(3):
                (folder / f"{index}.png").write_bytes(PNG)
    return tmp_path / "data"


def parse(*arguments: str) -> options.Options:
    return options.parse(arguments, Path("/data"), Path("/output"))


def test_default_values_of_options():
    chosen = dataclasses.asdict(parse())
    assert chosen["model"] == "mobilenet_v2"
    assert (chosen["image_size"], chosen["batch_size"], chosen["dropout"]) == (224, 32, 0.2)
    assert [chosen[key] for key in ("shift", "zoom", "shear")] == [0.2] * 3
    assert chosen["rotation"] == 40
    assert chosen["flip"]
    assert chosen["learning_rates"] == ((0, 1e-3), (3, 1e-4), (7, 1e-5))


def test_the_learning_rate_of_each_epoch():
    rates = [parse().learning_rate(epoch) for epoch in range(9)]
    assert rates == [1e-3] * 3 + [1e-4] * 4 + [1e-5] * 2


@pytest.mark.parametrize(
    "wrong",
    [("--epochs", "0"), ("--learning-rates", "3:1e-4"), ("--learning-rates", "fast"),
     ("--zoom", "1.5"), ("--model", "resnet")],
)  # fmt: skip
def test_invalid_arguments_end_with_2(wrong, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(*wrong)
    assert caught.value.code == 2
    assert wrong[0] in capsys.readouterr().err


def test_classes_and_labels(data):
    classes = image_files.class_names(data)
    split = image_files.split(data, "Train", classes)
    assert classes == ("cat", "dog")
    assert split.labels == (0, 0, 0, 1, 1, 1)
    assert split.paths[3].endswith("Train/dog/0.png")
    image_files.check_images(split.paths)


def remove_class(data: Path) -> None:
    for file in (data / "Test" / "dog").iterdir():
        file.unlink()
    (data / "Test" / "dog").rmdir()


def empty_class(data: Path) -> None:
    for file in (data / "Train" / "dog").iterdir():
        file.unlink()


def spoil_image(data: Path) -> None:
    (data / "Train" / "dog" / "1.png").write_text("not an image")


def one_class(data: Path) -> None:
    (data / "Train" / "dog").rename(data / "dog")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (remove_class, r"Test.*differ in dog"),
        (empty_class, r"Train/dog holds no image"),
        (spoil_image, r"Train/dog/1.png: not a PNG or JPEG"),
        (one_class, r"1 class folders \(cat\)"),
        (lambda data: data.rename(data.with_name("gone")), r"data does not exist"),
    ],
)
def test_invalid_data_is_reported(data, spoil, says):
    spoil(data)
    with pytest.raises(ContractError, match=says) as caught:
        classes = image_files.class_names(data)
        for name in ("Train", "Test"):
            image_files.check_images(image_files.split(data, name, classes).paths)
    assert caught.value.exit_code == 2


def test_checkpoints_by_epoch_without_incomplete_ones(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for name in ("ckpt-10.index", "ckpt-2.index", "ckpt-3.data-00000-of-00001", "checkpoint"):
        (folder / name).touch()
    found = checkpoints.find(tmp_path)
    assert [one.name for one in found] == ["ckpt-2", "ckpt-10"]
    assert found[-1].path == str(folder / "ckpt-10")


def test_a_checkpoint_that_is_removed_while_they_are_listed_is_left_out(tmp_path):
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (folder / "ckpt-1.index").symlink_to("removed")
    (folder / "ckpt-2.index").touch()
    assert [one.name for one in checkpoints.find(tmp_path)] == ["ckpt-2"]
