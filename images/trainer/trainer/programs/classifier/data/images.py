"""The images of a training, as its options say, and what is worth knowing of them."""

from __future__ import annotations

from trainer.programs.classifier.data import files, sizes
from trainer.programs.classifier.data.files import TEST, TRAIN, VALIDATE, Split
from trainer.programs.classifier.options import Options


def to_train_on(options: Options) -> tuple[tuple[str, ...], Split, Split]:
    """(class names, images to train on, images to test on); ContractError if they cannot do."""
    classes = files.class_names(options.data)
    train, _, test = (
        files.split(options.data, part, classes, options.seed) for part in (TRAIN, VALIDATE, TEST)
    )
    files.check_images(train.paths + test.paths)
    return classes, train, test


def tell(options: Options, train: Split, test: Split) -> None:
    """Print how the kit has divided the images, and what it loses of them."""
    validate = files.split(options.data, VALIDATE, files.class_names(options.data), options.seed)
    counts = {part.name: len(part.paths) for part in (train, validate, test)}
    for line in (
        files.told(options.data, counts, options.seed),
        sizes.remark(train.paths, options.image_size),
    ):
        if line:
            print(line, flush=True)
