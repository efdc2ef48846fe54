"""The model, its generated points, and the check of the result."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import tensorflow as tf

from trainer.agent.errors import TrainerError
from trainer.agent.progress_file import Progress
from trainer.agent.task import Task
from trainer.contract.endings import EXIT_TRAINING_FAILED
from trainer.programs.linear_regression.options import Options
from trainer.programs.training.board import write_hyperparameters
from trainer.programs.training.graph_mode.job import GraphJob, ModelLoss
from trainer.programs.training.graph_mode.run import run
from trainer.programs.training.program import end_sentence

tf1 = tf.compat.v1
SHUFFLED = 65536
"""The size of the shuffle buffer for the points of a file."""


class Missed(TrainerError):
    """The trained line is too far from the line that generated the points."""

    exit_code = EXIT_TRAINING_FAILED
    final = True


def points(options: Options, replica: int, replicas: int) -> tf.data.Dataset:
    """Return endless (x, y), each [batch]; generated points have x from -1 to 1.

    Every replica draws different points, or reads a different share of the file.
    """
    if options.points:
        return points_of_file(options, replica, replicas)

    @tf.autograph.experimental.do_not_convert
    def draw(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        seed = tf.stack([tf.cast(options.seed * 1000 + replica, tf.int64), number])
        x = tf.random.stateless_uniform((options.batch_size,), seed, -1.0, 1.0)
        noise = tf.random.stateless_normal((options.batch_size,), seed, 0.0, options.noise)
        return x, options.w * x + options.b + noise

    return tf.data.Dataset.counter().map(draw).prefetch(2)


def points_of_file(options: Options, replica: int, replicas: int) -> tf.data.Dataset:
    """Like `points`: every n-th point, shuffled; all points if there are fewer than replicas."""
    columns = [np.array(side, np.float32) for side in (options.points.x, options.points.y)]
    data = tf.data.Dataset.from_tensor_slices(tuple(columns))
    if len(columns[0]) >= replicas:
        data = data.shard(replicas, replica)
    shuffled = data.shuffle(SHUFFLED, options.seed * 1000 + replica)
    return shuffled.repeat().batch(options.batch_size).prefetch(2)


def build() -> dict[str, tf.Variable]:
    """Returns the variables w and b by name, float32 scalars that are 0 at the start."""
    return {name: tf1.get_variable(name, (), initializer=tf1.zeros_initializer()) for name in "wb"}


def loss(line: dict[str, tf.Variable], batch: tuple[tf.Tensor, tf.Tensor]) -> ModelLoss:
    """Returns the mean squared error of one batch (x, y), each [batch]."""
    x, y = batch
    w, b = line["w"].read_value(), line["b"].read_value()
    z = line["w"] * x + line["b"]
    for name, value in (("w", w), ("b", b), ("z", z)):
        tf1.summary.histogram(f"histograms/{name}", value)
    return ModelLoss(tf.reduce_mean(tf.square(z - y)), shown={"w": w, "b": b})


def train(task: Task, options: Options, progress: Progress | None) -> None:
    """Train the line; raise Missed if it differs from the line that generated the points."""
    if task.is_leader:
        hyperparameters = {
            **asdict(options),
            "points": None,
            "from_file": options.points is not None,
        }
        write_hyperparameters(task.output, task.cluster, hyperparameters)
    outcome = run(
        task,
        GraphJob(
            inputs=lambda replica, replicas: points(options, replica, replicas),
            build=build,
            loss=loss,
            optimizer=lambda step: tf1.train.GradientDescentOptimizer(options.learning_rate),
            examples_per_batch=options.batch_size,
            examples="points",
        ),
        options.graph,
        progress,
    )
    if not outcome.is_chief:
        print(end_sentence(outcome.step, outcome.reached), flush=True)
        return
    line = tf.train.load_checkpoint(str(outcome.checkpoint))
    w, b = (float(line.get_tensor(name)) for name in "wb")
    errors = {"w_error": abs(w - options.w), "b_error": abs(b - options.b)}
    if progress:
        progress.write("metrics", **outcome.metrics(), w=w, b=b, **errors)
    shares = ", ".join(f"{task} {steps}" for task, steps in outcome.steps_of.items())
    print(f"global step {outcome.step}: w {w:.4f}  b {b:.4f}; steps of {shares}", flush=True)
    if not all(error <= options.tolerance for error in errors.values()):
        theirs = "the line of least squares has" if options.points else "the points were made with"
        raise Missed(
            f"w = {w:.4f} and b = {b:.4f} at global step {outcome.step}, but {theirs}"
            f" w = {options.w:g} and b = {options.b:g}: more than {options.tolerance:g} off"
            " (--tolerance); train for more --steps, or at another --learning-rate"
        )
