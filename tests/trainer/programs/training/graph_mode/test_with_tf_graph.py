"""With TensorFlow: `run` of graph mode in a single task: clones, checkpoints, and its end."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
import numpy as np  # noqa: E402
from graph_jobs import (  # noqa: E402
    QUICK,
    SIZE,
    assert_same,
    numbers,
    small_job,
    values,
    weights,
    whole_rounds,
)

from trainer.agent.progress_file import Progress  # noqa: E402
from trainer.agent.task import read_task  # noqa: E402
from trainer.programs.training import program  # noqa: E402
from trainer.programs.training.graph_mode import checkpoint_saver, counters  # noqa: E402
from trainer.programs.training.graph_mode.job import ModelLoss  # noqa: E402
from trainer.programs.training.graph_mode.replica_graph import updates_of  # noqa: E402
from trainer.programs.training.graph_mode.run import run  # noqa: E402
from trainer.programs.training.graph_mode.session_start import RoundsThread  # noqa: E402
from trainer.programs.training.program import CheckpointError, Diverged  # noqa: E402

tf1 = tf.compat.v1


def test_a_single_task_trains_and_resumes_where_it_stopped(alone, capsys):
    first = run(alone, small_job(), QUICK, None)
    assert (first.step, first.reached, first.steps_of) == (20, program.STEPS, {"worker-0": 20})
    assert first.staleness_max == 0
    assert first.checkpoint == alone.output / "checkpoints" / "model.ckpt-20"
    again = run(alone, small_job(), replace(QUICK, steps=30), None)
    assert "continuing at global step 20 (model.ckpt-20)" in capsys.readouterr().out
    assert (again.step, again.steps_of) == (30, {"worker-0": 30})
    assert [saved.step for saved in checkpoint_saver.find(alone.output / "checkpoints")] == [30]
    done = run(alone, small_job(), replace(QUICK, steps=30), None)
    assert (done.reached, done.step, done.loss) == (program.NOTHING, 30, None)
    logs = list((alone.output / "tensorboard" / "train").glob("events.out.tfevents.*"))
    tags = {v.tag for log in logs for event in tf1.train.summary_iterator(str(log))
            for v in event.summary.value}  # fmt: skip
    assert {"loss", "largest", "gradient_norm/w", "gradients/v"} <= tags


@pytest.mark.parametrize("clones", [2, 3])
def test_clones_in_a_task_equal_one_large_batch(tmp_path, clones):
    def train(inputs, number):
        task = read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path / str(number))})
        made = small_job(inputs=inputs)
        return run(task, made, replace(QUICK, num_clones=number), None).checkpoint

    assert_same(train(numbers, clones), train(whole_rounds(clones), 1))


def test_a_loss_that_is_not_finite_ends_the_training_and_the_last_good_checkpoint_stays(alone):
    run(alone, small_job(), QUICK, None)
    with pytest.raises(Diverged, match=r"after step 2\d; model.ckpt-20, the last good checkpoint"):
        run(alone, small_job(rate=1e30), replace(QUICK, steps=40), None)
    (saved,) = checkpoint_saver.find(alone.output / "checkpoints")
    assert saved.step == 20
    assert all(np.isfinite(value).all() for value in values(saved.path).values())


def test_a_damaged_checkpoint_is_named_and_an_older_one_is_used(alone, capsys):
    options = replace(QUICK, keep=2)
    run(alone, small_job(), options, None)
    run(alone, small_job(), replace(options, steps=30), None)
    folder = alone.output / "checkpoints"
    whole = folder / "model.ckpt-30.data-00000-of-00001"
    whole.write_bytes(whole.read_bytes()[:40])
    result = run(alone, small_job(), replace(options, steps=25), None)
    assert "model.ckpt-30 is damaged" in capsys.readouterr().err
    assert result.step == 25
    (folder / "model.ckpt-25.index").write_bytes(b"nothing")
    (folder / "model.ckpt-30.data-00000-of-00001").unlink(missing_ok=True)
    for left in folder.glob("model.ckpt-20.*"):
        left.unlink()
    with pytest.raises(CheckpointError, match="holds no other"):
        run(alone, small_job(), options, None)


def test_another_models_checkpoint_is_refused(alone):
    run(alone, small_job(), QUICK, None)

    def more() -> dict[str, tf.Variable]:
        return weights() | {"more": tf1.get_variable("more", ())}

    with pytest.raises(CheckpointError, match=r"belongs to another model.*more"):
        run(alone, small_job(build=more), QUICK, None)


def test_rounds_that_were_ended_stop_no_replica():
    """The session was lost, and the replicas train on in a successor."""
    runs = []

    def apply():
        thread.end()
        raise tf.errors.UnavailableError(None, None, "Socket closed")

    session = SimpleNamespace(
        run=lambda *given: runs.append(given) or 0, make_callable=lambda _apply: apply
    )
    graph = SimpleNamespace(
        rounds=SimpleNamespace(chief=SimpleNamespace(apply=None)),
        counters=SimpleNamespace(global_step="step"),
    )
    thread = RoundsThread(session, graph, SimpleNamespace(), 10)
    thread.run()
    assert (runs, thread.failure) == ([("step",)], None)


def test_the_counters_of_all_replicas_are_restored_in_one_run():
    with tf.Graph().as_default(), tf1.Session() as session:
        counts = counters.make_counters("/device:CPU:0", 3, 10).counts
        runs = []
        counting = SimpleNamespace(run=lambda *given: (runs.append(given), session.run(*given)))
        counters.assign(counting, *((v, [n] * counters.BINS) for n, v in enumerate(counts)))
        assert len(runs) == 1, "each set of ops costs TensorFlow a pass over the whole graph"
        assert [int(value[-1]) for value in session.run(list(counts))] == [0, 1, 2]


def test_milestones_stay_and_are_numbered(alone):
    result = run(alone, small_job(milestone_steps=8), replace(QUICK, steps=24), None)
    folder = alone.output / "checkpoints"
    steps = [int(values(folder / f"ckpt-{number}")["global_step"]) for number in (1, 2, 3)]
    assert steps == [8, 16, 24]
    assert result.checkpoint.name == "model.ckpt-24"
    assert [saved.step for saved in checkpoint_saver.find(folder)] == [24]


def test_averages_of_batch_norm_follow_the_first_clone(alone):
    def build():
        image = tf.keras.Input((SIZE,))
        return tf.keras.Model(image, tf.keras.layers.BatchNormalization(momentum=0.5)(image))

    def loss(network, batch):
        shifted = tf.zeros_like(batch[0]) + 4.0
        out = network(shifted, training=True)
        return ModelLoss(tf.reduce_mean(out**2), updates=updates_of(network, shifted))

    result = run(
        alone, small_job(build=build, loss=loss),
        replace(QUICK, steps=2, num_clones=2), None,
    )  # fmt: skip
    reader = tf.train.load_checkpoint(str(result.checkpoint))
    mean = reader.get_tensor("batch_normalization/moving_mean")
    np.testing.assert_allclose(mean, np.full(SIZE, 3.0), rtol=1e-6)


def test_a_checkpoint_that_a_file_requests_stays(alone):
    def ask() -> None:
        until = time.monotonic() + 120
        while '"step"' not in alone.progress_file.read_text() and time.monotonic() < until:
            time.sleep(0.02)
        (alone.output / "save-now").touch()

    progress = Progress(alone.progress_file)
    threading.Thread(target=ask).start()
    options = replace(QUICK, steps=300, pause_ms=10)
    run(alone, small_job(), options, progress)
    found = checkpoint_saver.find(alone.output / "checkpoints")
    assert [saved.by_hand for saved in found] == [True, False]
    assert not (alone.output / "save-now").exists()


def test_sigterm_saves_and_ends_at_once(run_task, events, tmp_path):
    arguments = ("--steps", "100000", "--pause-ms", "5", "--save-secs", "0", "--log-steps", "10")
    task = run_task("worker-0", {"worker": ["127.0.0.1:1"]}, "run", "linear_regression", *arguments)
    next(line for line in task.stdout if line.startswith("step "))
    began = time.monotonic()
    task.send_signal(signal.SIGTERM)
    output = task.communicate(timeout=30)[0]
    assert time.monotonic() - began < 10
    assert task.returncode == 143, output
    (saved,) = checkpoint_saver.find(tmp_path / "checkpoints")
    assert f"stopped by SIGTERM; saved model.ckpt-{saved.step}" in output
    assert saved.step > 0


def test_linear_regression_finds_its_line_or_reports_the_error(run_task, events):
    def run(*arguments: str) -> tuple[int, str]:
        task = run_task("worker-0", {"worker": ["127.0.0.1:1"]}, "run", "linear_regression",
                        *arguments)  # fmt: skip
        output = task.communicate(timeout=60)[0]
        return task.returncode, output

    code, output = run("--steps", "100", "--learning-rate", "0.01")
    assert code == 5
    assert "more than 0.02 off" in events("worker-0")[-1]["message"]
    code, output = run("--steps", "900", "--learning-rate", "0.02")
    assert code == 0, output
    assert "continuing at global step 100" in output
    (*_, metrics) = [e for e in events("worker-0") if e["event"] == "metrics"]
    assert abs(metrics["w"] - 2) <= 0.02
    assert metrics["steps_of_worker-0"] == 900
