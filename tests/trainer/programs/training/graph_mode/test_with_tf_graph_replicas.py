"""With TensorFlow: `run` of graph mode by several replicas, as threads of this process, with a
ps."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
import numpy as np  # noqa: E402
from graph_jobs import (  # noqa: E402
    BATCH,
    QUICK,
    SIZE,
    assert_same,
    numbers,
    small_job,
    values,
    whole_rounds,
)

from trainer.agent.task import read_task  # noqa: E402
from trainer.programs.detection.config.pipeline import Averaging  # noqa: E402
from trainer.programs.detection.model.weights import AVERAGE  # noqa: E402
from trainer.programs.detection.train.optimizers import kept_by  # noqa: E402
from trainer.programs.training import program  # noqa: E402
from trainer.programs.training.graph_mode import session_start  # noqa: E402
from trainer.programs.training.graph_mode.job import GraphJob, ModelLoss  # noqa: E402
from trainer.programs.training.graph_mode.options import GraphOptions  # noqa: E402
from trainer.programs.training.graph_mode.replica_graph import updates_of  # noqa: E402
from trainer.programs.training.graph_mode.run import run  # noqa: E402
from trainer.programs.training.graph_mode.training_session import Training  # noqa: E402
from trainer.programs.training.program import Diverged  # noqa: E402

tf1 = tf.compat.v1
AVERAGED = Averaging(use_moving_average=True, moving_average_decay=0.5)


@pytest.fixture
def together(tmp_path, free_port):
    """Run a job on several replicas of one cluster with two ps; returns their results, the chief's
    first."""

    def run_together(replicas: int, made: GraphJob, *options: GraphOptions) -> list:
        cluster = {
            "worker": [f"127.0.0.1:{free_port()}" for _ in range(replicas)],
            "ps": [f"127.0.0.1:{free_port()}" for _ in range(2)],
        }
        servers = [tf.distribute.Server(cluster, "ps", index) for index in range(2)]
        options = options if len(options) > 1 else options * replicas

        def one(index: int):
            config = {"cluster": cluster, "task": {"type": "worker", "index": index}}
            variables = {"TF_CONFIG": json.dumps(config), "CLUSTER_KIT_OUTPUT": str(tmp_path)}
            return run(read_task(variables), made, options[index], None)

        with ThreadPoolExecutor(replicas) as pool:
            results = list(pool.map(one, range(replicas)))
        assert all(server.target for server in servers)
        return results

    return run_together


@pytest.mark.parametrize(
    ("replicas", "clones", "norm"), [(2, 1, 0.0), (3, 1, 0.0), (2, 1, 0.5), (2, 2, 0.0)]
)
def test_sync_replicas_equal_one_large_batch(together, tmp_path, replicas, clones, norm):
    options = replace(QUICK, update="sync", num_clones=clones, clone_on_cpu=True)
    results = together(replicas, small_job(clip_norm=norm), options)
    assert [result.step for result in results] == [20] * replicas
    assert results[0].steps_of == {f"worker-{i}": 20 for i in range(replicas)}
    assert results[0].staleness_max == 0

    def whole(norm: float) -> Path:
        alone = read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path / f"alone-{norm}")})
        job = small_job(inputs=whole_rounds(replicas * clones), clip_norm=norm)
        return run(alone, job, QUICK, None).checkpoint

    assert_same(results[0].checkpoint, whole(norm))
    if norm:
        with pytest.raises(AssertionError):
            assert_same(results[0].checkpoint, whole(0.0))


@pytest.mark.parametrize("update", ["async", "sync"])
def test_rows_averages_and_clipping_are_as_in_one_process(together, tmp_path, update):
    """The loss does not depend on the batch, so each replica has the same gradients."""

    def build():
        words = tf1.get_variable(
            "words", (5, SIZE), initializer=tf1.ones_initializer(), regularizer=tf.nn.l2_loss
        )
        tf1.get_variable("not_used", (5, SIZE))
        image = tf.keras.Input((SIZE,))
        norm = tf.keras.layers.BatchNormalization(momentum=0.5)
        return words, tf.keras.Model(image, norm(image))

    def loss(made, batch):
        words, network = made
        rows = tf.gather(words, [1, 3, 3]) + words[2]
        shifted = tf.zeros_like(batch[0]) + 4.0
        total = tf.reduce_mean(rows**2) + tf.reduce_mean(network(shifted, training=True) ** 2)
        return ModelLoss(total, updates=updates_of(network, shifted))

    def optimizer(_):
        return kept_by(tf1.train.MomentumOptimizer(0.1, 0.5), AVERAGED)

    job = small_job(build=build, loss=loss, optimizer=optimizer, clip_norm=0.5)
    options = replace(QUICK, steps=6, update=update)
    late = replace(job, startup_delay_steps=6 if update == "async" else 0)
    chief = together(2, late, options)[0]
    alone = read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path / "alone")})
    whole = run(alone, job, options, None)
    found, expected = (tf.train.load_checkpoint(str(r.checkpoint)) for r in (chief, whole))
    names = [n for n in expected.get_variable_to_shape_map() if not n.startswith("job/")]
    assert {"words", "batch_normalization/moving_mean", f"words{AVERAGE}"} <= set(names)
    assert set(names) <= set(found.get_variable_to_shape_map()), "a variable that no loss has"
    assert {n for n in found.get_variable_to_shape_map() if "not_used" in n} == {"not_used"}
    for name in set(names) - {"not_used"}:
        np.testing.assert_allclose(
            found.get_tensor(name), expected.get_tensor(name), atol=1e-5, err_msg=name
        )


def test_steps_of_async_replicas_add_up_to_the_global_step(together):
    results = together(2, small_job(0.005), replace(QUICK, steps=300))
    shares = results[0].steps_of
    assert sum(shares.values()) == results[0].step
    assert 300 <= results[0].step <= 301
    assert min(shares.values()) > 0
    assert [result.is_chief for result in results] == [True, False]
    assert [result.checkpoint is None for result in results] == [False, True]
    assert results[0].loss < 1


@pytest.mark.parametrize("made_before", [False, True])
def test_the_chief_saves_what_the_others_have_made_without_it(
    together, alone, monkeypatch, made_before
):
    """A chief that was restarted still waits for a lost replica when the others make the last
    step."""
    if made_before:
        run(alone, small_job(0.005), replace(QUICK, steps=10), None)
    others_are_done = threading.Event()
    make_steps = Training._steps

    def then_tell(self, *args):
        reached = make_steps(self, *args)
        others_are_done.set()
        return reached

    monkeypatch.setattr(Training, "_steps", then_tell)
    monkeypatch.setattr(session_start, "wait_for_others", lambda _: others_are_done.wait(60))
    chief = together(2, small_job(0.005), QUICK)[0]
    assert (chief.step, chief.reached) == (20, program.STEPS)
    assert values(chief.checkpoint)["global_step"] == 20


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


def test_a_round_does_not_wait_for_a_backup_worker(together):
    fast = replace(QUICK, update="sync", backup_workers=1, steps=40)
    result = together(3, small_job(), fast, fast, replace(fast, pause_ms=100))[0]
    assert result.step == 40
    assert result.steps_of["worker-2"] < 30
    assert min(result.steps_of["worker-0"], result.steps_of["worker-1"]) >= 35


def test_replicas_end_together_at_the_loss_threshold(together):
    options = replace(QUICK, steps=5000, update="sync", loss_threshold=0.5)
    results = together(2, small_job(), options)
    assert results[0].reached == program.THRESHOLD
    assert results[0].loss <= 0.5
    assert 20 <= results[0].step == results[1].step < 5000


@pytest.mark.parametrize("update", ["async", "sync"])
def test_a_loss_that_is_not_finite_stops_all_replicas(together, update):
    def poisoned(replica: int, replicas: int) -> tf.data.Dataset:
        bad = tf.data.Dataset.from_tensors((tf.fill((BATCH, SIZE), np.nan), tf.ones((BATCH, 1))))
        good = numbers(replica, replicas)
        return good.take(5).concatenate(bad).concatenate(good) if replica else good

    options = replace(QUICK, steps=100_000, update=update, pause_ms=1)
    with pytest.raises(Diverged, match="not finite"):
        together(2, small_job(0.005, inputs=poisoned), options)


def test_more_replicas_than_before_continue_from_the_same_checkpoint(alone, together):
    run(alone, small_job(0.005), QUICK, None)
    result = together(2, small_job(0.005), replace(QUICK, steps=60))[0]
    assert result.steps_of["worker-0"] > 20
    assert sum(result.steps_of.values()) == result.step >= 60


def test_all_replicas_except_the_leader_begin_at_the_startup_delay(together, capsys):
    late = small_job(0.005, startup_delay_steps=60)
    result = together(2, late, replace(QUICK, steps=80, pause_ms=5))[0]
    assert result.steps_of["worker-0"] >= 60
    assert 0 < result.steps_of["worker-1"] <= result.step - 60
    assert "waiting for global step 60 (now " in capsys.readouterr().out
    beyond = small_job(0.005, startup_delay_steps=10_000)
    result = together(2, beyond, replace(QUICK, steps=result.step + 20))[0]
    assert result.reached == program.STEPS
