"""After the last step: the leader scores the final model on Test, and saves it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from trainer.agent.progress_file import Progress
from trainer.programs.classifier.data import files, input_pipeline
from trainer.programs.classifier.model import architecture, checkpoints, weights
from trainer.programs.classifier.model.export import export
from trainer.programs.classifier.options import Options
from trainer.programs.training import result


def finish(
    options: Options,
    classes: tuple[str, ...],
    test_split: files.Split,
    figures: Mapping[str, float],
    progress: Progress | None,
) -> None:
    """Score the last checkpoint on Test in a model without a strategy, and save that model.

    Args:
        figures: of the training, as EpochReport.figures; added to the `metrics` event.
    """
    began = time.monotonic()
    if progress:
        progress.write("phase", name="finishing")
    plain = architecture.build(options, len(classes))
    weights.load(checkpoints.find(options.output)[-1].path, plain)
    tested = plain.evaluate(
        input_pipeline.scoring_set(test_split, len(classes), options), verbose=0, return_dict=True
    )
    accuracy, loss = round(tested["accuracy"], 6), round(tested["loss"], 6)
    scored = time.monotonic()
    export(plain, options.output / "model", options, classes)
    metrics = {"test_accuracy": accuracy, "test_loss": loss, **figures}
    result.write(options.output, metrics, classes, progress)
    speed = f"{figures['steps_per_second']:g} steps/s; " if "steps_per_second" in figures else ""
    print(
        f"test accuracy {accuracy:.4f}, loss {loss:.4f};"
        f" {speed}scored in {scored - began:.1f} s, model saved in"
        f" {time.monotonic() - scored:.1f} s",
        flush=True,
    )
