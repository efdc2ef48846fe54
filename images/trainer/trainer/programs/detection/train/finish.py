"""After the last step: the leader scores the final model, saves it, and writes the result."""

from __future__ import annotations

import time
from collections.abc import Mapping

from trainer.agent.progress_file import Progress
from trainer.programs.detection.data.check import Checked
from trainer.programs.detection.evaluate.scoring import Scorer
from trainer.programs.detection.model import ssd, weights
from trainer.programs.detection.model.export import export
from trainer.programs.detection.options import Options
from trainer.programs.training import result


def finish(
    options: Options,
    checked: Checked,
    checkpoint: str,
    figures: Mapping[str, object],
    progress: Progress | None,
) -> None:
    """Make the model of `checkpoint` (a prefix) the final one.

    Args:
        figures: of the training, for the `metrics` event and result.json.
    """
    began = time.monotonic()
    if progress:
        progress.write("phase", name="finishing")
    pipeline = options.pipeline
    detector = ssd.build(pipeline.model, pipeline.train_config.seed)
    weights.load(detector.network, checkpoint, pipeline.averaged)
    metrics = dict(figures)
    scores = ""
    if options.final_score and checked.evaluation:
        score = Scorer(pipeline, detector, checked.labels, checked.evaluation.images).score()
        metrics |= {
            "map": score.figures.map,
            "map_50": score.figures.map_50,
            "evaluation_loss": score.loss,
        }
        scores = f"mAP@0.5 {score.figures.map_50:.4f}, COCO mAP {score.figures.map:.4f}; "
    scored = time.monotonic()
    export(detector, pipeline, checked.labels, options.output / "model")
    result.write(options.output, metrics, checked.labels.names, progress)
    print(
        f"{scores}scored in {scored - began:.1f} s,"
        f" model saved in {time.monotonic() - scored:.1f} s",
        flush=True,
    )
