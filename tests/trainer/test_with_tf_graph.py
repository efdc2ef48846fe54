"""With TensorFlow: `run` of graph mode, alone and with replicas as threads of this process."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
import numpy as np  # noqa: E402
from trainer.graph import checkpoints, job  # noqa: E402
from trainer.graph.errors import CheckpointError, Diverged  # noqa: E402
from trainer.graph.job import GraphJob, ModelLoss  # noqa: E402
from trainer.graph.keras import updates_of  # noqa: E402
from trainer.graph.options import GraphOptions  # noqa: E402
from trainer.task import read_task  # noqa: E402

tf1 = tf.compat.v1
SIZE, BATCH = 4, 6
QUICK = GraphOptions(steps=20, save_secs=0, log_steps=10, summary_steps=5)


def numbers(replica: int, replicas: int) -> tf.data.Dataset:
    """Batches of one sequence, shared out: what n replicas take in a round is one big batch."""
    drawn = np.random.default_rng(5).normal(size=(120 * BATCH, SIZE)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((drawn, (drawn**2).sum(1, keepdims=True)))
    return data.repeat().batch(BATCH).shard(replicas, replica)


def whole_rounds(replicas: int):
    """The same sequence in big batches, for a replica alone."""
    return lambda replica, _: numbers(0, 1).unbatch().batch(BATCH * replicas)


def weights() -> dict[str, tf.Variable]:
    start = tf1.random_normal_initializer(stddev=0.3, seed=7)
    return {name: tf1.get_variable(name, (SIZE, 1), initializer=start) for name in ("v", "w")}


def squared(made: dict[str, tf.Variable], batch: tuple[tf.Tensor, tf.Tensor]) -> ModelLoss:
    x, y = batch
    error = tf.matmul(x, made["v"]) + tf.matmul(x**2, made["w"]) - y
    return ModelLoss(tf.reduce_mean(error**2), {"largest": tf.reduce_max(error)})


def small_job(rate: float = 0.02, **changes: object) -> GraphJob:
    plain = GraphJob(
        inputs=numbers,
        build=weights,
        loss=squared,
        optimizer=lambda step: tf1.train.MomentumOptimizer(rate, 0.5),
        examples_per_batch=BATCH,
    )
    return replace(plain, **changes)


@pytest.fixture
def alone(tmp_path: Path):
    return read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path)})


@pytest.fixture
def together(tmp_path, free_port):
    """Run a job on several replicas of one cluster with a ps; their results, chief first."""

    def run(replicas: int, made: GraphJob, *options: GraphOptions) -> list:
        cluster = {
            "worker": [f"127.0.0.1:{free_port()}" for _ in range(replicas)],
            "ps": [f"127.0.0.1:{free_port()}"],
        }
        server = tf.distribute.Server(cluster, job_name="ps", task_index=0)
        options = options if len(options) > 1 else options * replicas

        def one(index: int):
            config = {"cluster": cluster, "task": {"type": "worker", "index": index}}
            variables = {"TF_CONFIG": json.dumps(config), "CLUSTER_KIT_OUTPUT": str(tmp_path)}
            return job.run(read_task(variables), made, options[index], None)

        with ThreadPoolExecutor(replicas) as pool:
            results = list(pool.map(one, range(replicas)))
        assert server.target
        return results

    return run


def values(checkpoint: Path) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(checkpoint))
    return {name: reader.get_tensor(name) for name in ("v", "w", "global_step")}


def assert_same(found: Path, expected: Path) -> None:
    for name, value in values(expected).items():
        np.testing.assert_allclose(values(found)[name], value, atol=1e-5, err_msg=name)


def test_a_task_alone_trains_and_resumes_where_it_stopped(alone, capsys):
    first = job.run(alone, small_job(), QUICK, None)
    assert (first.step, first.reached, first.steps_of) == (20, job.STEPS, {"worker-0": 20})
    assert first.staleness_max == 0
    assert first.checkpoint == alone.output / "checkpoints" / "model.ckpt-20"
    again = job.run(alone, small_job(), replace(QUICK, steps=30), None)
    assert "going on at global step 20 (model.ckpt-20)" in capsys.readouterr().out
    assert (again.step, again.steps_of) == (30, {"worker-0": 30})
    assert [saved.step for saved in checkpoints.find(alone.output / "checkpoints")] == [30]
    done = job.run(alone, small_job(), replace(QUICK, steps=30), None)
    assert (done.reached, done.step, done.loss) == (job.NOTHING, 30, None)
    logs = list((alone.output / "tensorboard" / "train").glob("events.out.tfevents.*"))
    tags = {v.tag for log in logs for event in tf1.train.summary_iterator(str(log))
            for v in event.summary.value}  # fmt: skip
    assert {"loss", "largest", "gradient_norm/w", "gradients/v"} <= tags


@pytest.mark.parametrize("clones", [2, 3])
def test_clones_in_a_task_are_one_big_batch(tmp_path, clones):
    def train(inputs, number):
        task = read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path / str(number))})
        made = small_job(inputs=inputs)
        return job.run(task, made, replace(QUICK, num_clones=number), None).checkpoint

    assert_same(train(numbers, clones), train(whole_rounds(clones), 1))


@pytest.mark.parametrize("replicas", [2, 3])
def test_sync_replicas_are_one_big_batch(together, tmp_path, replicas):
    results = together(replicas, small_job(), replace(QUICK, update="sync"))
    assert [result.step for result in results] == [20] * replicas
    assert results[0].steps_of == {f"worker-{i}": 20 for i in range(replicas)}
    assert results[0].staleness_max == 0
    alone = read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path / "alone")})
    whole = job.run(alone, small_job(inputs=whole_rounds(replicas)), QUICK, None)
    assert_same(results[0].checkpoint, whole.checkpoint)


def test_async_shares_are_the_global_step(together):
    results = together(2, small_job(0.005), replace(QUICK, steps=300))
    shares = results[0].steps_of
    assert sum(shares.values()) == results[0].step
    assert 300 <= results[0].step <= 301
    assert min(shares.values()) > 0
    assert [result.is_chief for result in results] == [True, False]
    assert [result.checkpoint is None for result in results] == [False, True]
    assert results[0].loss < 1


def test_sync_waits_for_the_slowest_and_async_does_not(together, tmp_path):
    fast, slow = replace(QUICK, steps=40), replace(QUICK, steps=40, pause_ms=50)
    asynchronous = together(2, small_job(0.005), fast, slow)[0]
    assert asynchronous.steps_of["worker-1"] < 20
    assert asynchronous.staleness_max <= 40
    synchronous = together(
        2, small_job(0.005), replace(fast, update="sync", steps=60),
        replace(slow, update="sync", steps=60),
    )[0]  # fmt: skip
    made = {n: s - asynchronous.steps_of[n] for n, s in synchronous.steps_of.items()}
    assert synchronous.step == 60
    assert set(made.values()) == {60 - asynchronous.step}
    assert synchronous.updates_per_second < 20


def test_a_backup_worker_is_not_waited_for(together):
    fast = replace(QUICK, update="sync", backup_workers=1, steps=40)
    result = together(3, small_job(), fast, fast, replace(fast, pause_ms=100))[0]
    assert result.step == 40
    assert result.steps_of["worker-2"] < 30
    assert min(result.steps_of["worker-0"], result.steps_of["worker-1"]) >= 35


def test_replicas_end_together_at_the_loss_threshold(together):
    options = replace(QUICK, steps=5000, update="sync", loss_threshold=0.5)
    results = together(2, small_job(), options)
    assert results[0].reached == job.THRESHOLD
    assert results[0].loss <= 0.5
    assert 20 <= results[0].step == results[1].step < 5000


def test_a_loss_that_is_no_number_stops_and_leaves_the_last_good_checkpoint(alone):
    job.run(alone, small_job(), QUICK, None)
    with pytest.raises(Diverged, match=r"after step 2\d; model.ckpt-20, the last good checkpoint"):
        job.run(alone, small_job(rate=1e30), replace(QUICK, steps=40), None)
    (saved,) = checkpoints.find(alone.output / "checkpoints")
    assert saved.step == 20
    assert all(np.isfinite(value).all() for value in values(saved.path).values())


@pytest.mark.parametrize("update", ["async", "sync"])
def test_a_loss_that_is_no_number_stops_all_replicas(together, update):
    def poisoned(replica: int, replicas: int) -> tf.data.Dataset:
        bad = tf.data.Dataset.from_tensors((tf.fill((BATCH, SIZE), np.nan), tf.ones((BATCH, 1))))
        good = numbers(replica, replicas)
        return good.take(5).concatenate(bad).concatenate(good) if replica else good

    options = replace(QUICK, steps=100_000, update=update, pause_ms=1)
    with pytest.raises(Diverged, match="no number"):
        together(2, small_job(0.005, inputs=poisoned), options)


def test_a_damaged_checkpoint_is_named_and_an_older_one_taken(alone, capsys):
    options = replace(QUICK, keep=2)
    job.run(alone, small_job(), options, None)
    job.run(alone, small_job(), replace(options, steps=30), None)
    folder = alone.output / "checkpoints"
    whole = folder / "model.ckpt-30.data-00000-of-00001"
    whole.write_bytes(whole.read_bytes()[:40])
    result = job.run(alone, small_job(), replace(options, steps=25), None)
    assert "model.ckpt-30 is damaged" in capsys.readouterr().err
    assert result.step == 25
    (folder / "model.ckpt-25.index").write_bytes(b"nothing")
    (folder / "model.ckpt-30.data-00000-of-00001").unlink(missing_ok=True)
    for left in folder.glob("model.ckpt-20.*"):
        left.unlink()
    with pytest.raises(CheckpointError, match="holds no other"):
        job.run(alone, small_job(), options, None)


def test_another_models_checkpoint_is_refused(alone):
    job.run(alone, small_job(), QUICK, None)

    def more() -> dict[str, tf.Variable]:
        return weights() | {"more": tf1.get_variable("more", ())}

    with pytest.raises(CheckpointError, match=r"belongs to another model.*more"):
        job.run(alone, small_job(build=more), QUICK, None)


def test_more_replicas_than_before_go_on_from_the_same_checkpoint(alone, together):
    job.run(alone, small_job(0.005), QUICK, None)
    result = together(2, small_job(0.005), replace(QUICK, steps=60))[0]
    assert result.steps_of["worker-0"] > 20
    assert sum(result.steps_of.values()) == result.step >= 60


def test_milestones_stay_and_are_numbered(alone):
    result = job.run(alone, small_job(milestone_steps=8), replace(QUICK, steps=24), None)
    folder = alone.output / "checkpoints"
    steps = [int(values(folder / f"ckpt-{number}")["global_step"]) for number in (1, 2, 3)]
    assert steps == [8, 16, 24]
    assert result.checkpoint.name == "model.ckpt-24"
    assert [saved.step for saved in checkpoints.find(folder)] == [24]


def test_batch_norms_averages_follow_the_first_clone(alone):
    def build():
        image = tf.keras.Input((SIZE,))
        return tf.keras.Model(image, tf.keras.layers.BatchNormalization(momentum=0.5)(image))

    def loss(network, batch):
        shifted = tf.zeros_like(batch[0]) + 4.0
        out = network(shifted, training=True)
        return ModelLoss(tf.reduce_mean(out**2), updates=updates_of(network, shifted))

    result = job.run(
        alone, small_job(build=build, loss=loss),
        replace(QUICK, steps=2, num_clones=2), None,
    )  # fmt: skip
    reader = tf.train.load_checkpoint(str(result.checkpoint))
    mean = reader.get_tensor("batch_normalization/moving_mean")
    np.testing.assert_allclose(mean, np.full(SIZE, 3.0), rtol=1e-6)


def test_a_file_asks_for_a_checkpoint_that_stays(alone):
    def ask() -> None:
        time.sleep(1.0)
        (alone.output / "save-now").touch()

    threading.Thread(target=ask).start()
    options = replace(QUICK, steps=300, pause_ms=10)
    job.run(alone, small_job(), options, None)
    found = checkpoints.find(alone.output / "checkpoints")
    assert [saved.by_hand for saved in found] == [True, False]
    assert not (alone.output / "save-now").exists()


def test_sigterm_saves_and_ends_at_once(run_task, events, tmp_path):
    arguments = ("--steps", "100000", "--pause-ms", "5", "--save-secs", "0", "--log-steps", "10")
    task = run_task("worker-0", {"worker": ["127.0.0.1:1"]}, "run", "linear_regression", *arguments)
    next(line for line in task.stdout if line.startswith("step "))
    began = time.monotonic()
    task.send_signal(signal.SIGTERM)
    said = task.communicate(timeout=30)[0]
    assert time.monotonic() - began < 3
    assert task.returncode == 143, said
    (saved,) = checkpoints.find(tmp_path / "checkpoints")
    assert f"stopped by SIGTERM; saved model.ckpt-{saved.step}" in said
    assert saved.step > 0


def test_linear_regression_finds_its_line_or_says_how_far_off_it_is(run_task, events):
    def run(*arguments: str) -> tuple[int, str]:
        task = run_task("worker-0", {"worker": ["127.0.0.1:1"]}, "run", "linear_regression",
                        *arguments)  # fmt: skip
        said = task.communicate(timeout=60)[0]
        return task.returncode, said

    code, said = run("--steps", "100", "--learning-rate", "0.01")
    assert code == 5
    assert "more than 0.02 off" in events("worker-0")[-1]["message"]
    code, said = run("--steps", "900", "--learning-rate", "0.02")
    assert code == 0, said
    assert "going on at global step 100" in said
    (*_, metrics) = [e for e in events("worker-0") if e["event"] == "metrics"]
    assert abs(metrics["w"] - 2) <= 0.02
    assert metrics["steps_of_worker-0"] == 900
