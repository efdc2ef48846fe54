"""The evaluator: scores every checkpoint on the evaluation images, and keeps the best model."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import tensorflow as tf

from trainer.agent import atomic
from trainer.agent.errors import ContractError
from trainer.agent.progress_file import Progress
from trainer.programs.detection.data import label_map, records
from trainer.programs.detection.evaluate import draw
from trainer.programs.detection.evaluate.metrics import Score, Scorer
from trainer.programs.detection.model import ssd, weights
from trainer.programs.detection.model.ssd import export
from trainer.programs.detection.model.weights import Checkpoint
from trainer.programs.detection.options import Options
from trainer.programs.training.board import VALIDATION, Board
from trainer.programs.training.checkpoint_files import DAMAGED
from trainer.programs.training.sidecar import score_each

MEMORY, DRAWINGS = "evaluator.json", "detections"
ON_BOARD = 4
"""The number of images of each evaluation that TensorBoard shows."""
ALWAYS = 50
"""After this many evaluations, only every 50th is written, so that the event file does not grow
forever."""
BEST_SO_FAR = "best-so-far/weights"


@dataclass
class Memory:
    """The checkpoints that are scored (name → time of writing, ns), and the best score so far."""

    written: dict[str, int] = field(default_factory=dict)
    scored: list[dict[str, float]] = field(default_factory=list)
    """Step, loss, map and map_50 of each scored checkpoint, in the order of scoring."""
    best: str = ""
    best_map: float = -1.0
    best_map_50: float = -1.0

    @classmethod
    def read(cls, file: Path) -> Memory:
        return cls(**json.loads(file.read_text())) if file.exists() else cls()


def evaluate(options: Options, progress: Progress | None) -> None:
    """Score checkpoints in order until the job has ended and the last one is scored."""
    evaluator = Evaluator(options, progress)
    score_each(evaluator.waiting, evaluator.take, progress)
    evaluator.finish()


class Evaluator:
    """Scores checkpoints in order, and records which checkpoints are scored."""

    def __init__(self, options: Options, progress: Progress | None) -> None:
        self._options = options
        self._progress = progress
        pipeline = options.pipeline
        reader = pipeline.eval_input_reader
        if reader is None:
            raise ContractError(
                "the configuration in parts names nothing to score: add --eval_input_config_path"
                " FILE, or run no evaluator (`--set evaluator=0`)"
            )
        self._averaged = pipeline.averaged
        self._labels = label_map.read(Path(reader.label_map_path))
        self._detector = ssd.build(pipeline.model, pipeline.train_config.seed)
        files = records.find(reader.input_path, "eval_input_reader.input_path")
        images = sum(1 for file in files for _ in tf.data.TFRecordDataset(file))
        self._scorer = Scorer(pipeline, self._detector, self._labels, images)
        self._memory = Memory.read(options.output / MEMORY)
        self._board = Board(options.output, VALIDATION)
        self._keeping = tf.train.Checkpoint(network=self._detector.network)
        self._last: Score | None = None
        self._best: Score | None = None

    def waiting(self) -> list[Checkpoint]:
        """Returns complete checkpoints that are not scored yet, oldest first."""
        return [
            checkpoint
            for checkpoint in weights.find(self._options.output)
            if self._memory.written.get(checkpoint.name) != checkpoint.written
        ]

    def take(self, checkpoint: Checkpoint) -> None:
        """Score a checkpoint; do nothing if it was removed because newer ones exist."""
        began = time.monotonic()
        try:
            weights.load(self._detector.network, checkpoint.path, self._averaged)
        except DAMAGED:
            return
        score = self._scorer.score()
        better = self._remember(checkpoint, score)
        if better:
            self._best = score
            self._keeping.write(str(self._options.output / BEST_SO_FAR))
        self._last = score
        print(
            f"{checkpoint.name}: loss {score.loss:.4f}  mAP@0.5 {score.figures.map_50:.4f}"
            f"  COCO mAP {score.figures.map:.4f}{'  best' if better else ''}"
            f"  {time.monotonic() - began:.1f} s",
            flush=True,
        )

    def finish(self) -> None:
        """Draw the last and the best checkpoint, and save the best model. This happens only once,
        since it is slow."""
        drawings, memory = self._options.output / DRAWINGS, self._memory
        for score, name in ((self._last, "last.png"), (self._best, "best.png")):
            if score:
                self._scorer.draw(score, drawings / name)
        best = self._options.output / BEST_SO_FAR
        if best.with_name(f"{best.name}.index").exists():
            self._keeping.read(str(best)).assert_existing_objects_matched()
            target = self._options.output / "best"
            export(self._detector, self._options.pipeline, self._labels, target)
            shutil.rmtree(best.parent)
        if not self._progress or not memory.scored:
            return
        last = memory.scored[-1]
        self._progress.write(
            "metrics",
            validation_map=last["map"],
            validation_map_50=last["map_50"],
            best_validation_map=memory.best_map,
            best_checkpoint_map_50=memory.best_map_50,
            best_checkpoint=memory.best,
        )

    def _remember(self, checkpoint: Checkpoint, score: Score) -> bool:
        """Record the score in all outputs; return whether it is the best so far."""
        memory, figures = self._memory, score.figures
        figures_by_name = {"loss": score.loss, "map": figures.map, "map_50": figures.map_50}
        memory.written[checkpoint.name] = checkpoint.written
        memory.scored.append({"step": checkpoint.step, **figures_by_name})
        better = figures.map > memory.best_map
        if better:
            memory.best, memory.best_map = checkpoint.name, figures.map
            memory.best_map_50 = figures.map_50
        of_classes = {f"map_of_class/{name}": value for name, value in figures.per_class.items()}
        self._board.scalars(
            checkpoint.step, {**figures_by_name, "map_75": figures.map_75, **of_classes}
        )
        self._show(checkpoint.step, score)
        if self._progress:
            self._progress.write(
                "evaluation",
                checkpoint=checkpoint.name,
                step=checkpoint.step,
                **figures_by_name,
                written=round(checkpoint.written / 1e9, 3),
            )
        atomic.replace(self._options.output / MEMORY, json.dumps(asdict(memory), indent=1) + "\n")
        return better

    def _show(self, step: int, score: Score) -> None:
        """Write a few images with their detections for TensorBoard; later on less often."""
        count = len(self._memory.scored)
        pictures = self._scorer.drawn(score, ON_BOARD)
        if pictures and (count <= ALWAYS or count % ALWAYS == 0):
            encoded = [draw.jpeg(picture) for picture in pictures]
            self._board.pictures(step, DRAWINGS, encoded, pictures[0].size)
