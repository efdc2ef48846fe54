"""With TensorFlow: graph mode's steps with variables in packs, and the tensors that they send."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
import numpy as np  # noqa: E402
from graph_jobs import QUICK, SIZE, small_job  # noqa: E402
from graph_jobs import variable_on_ps as variable  # noqa: E402

from trainer.agent.task import read_task  # noqa: E402
from trainer.programs.training import packs  # noqa: E402
from trainer.programs.training.graph_mode import packed_steps  # noqa: E402
from trainer.programs.training.graph_mode.job import ModelLoss  # noqa: E402
from trainer.programs.training.graph_mode.replica import replica_of  # noqa: E402
from trainer.programs.training.graph_mode.replica_graph import build, updates_of  # noqa: E402

tf1 = tf.compat.v1
LAYERS = 20


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def deep() -> tf.keras.Model:
    given = out = tf.keras.Input((SIZE,))
    for _ in range(LAYERS):
        out = tf.keras.layers.BatchNormalization()(tf.keras.layers.Dense(SIZE)(out))
    return tf.keras.Model(given, out)


def squares(network: tf.keras.Model, batch: tuple[tf.Tensor, tf.Tensor]) -> ModelLoss:
    out = network(batch[0], training=True)
    return ModelLoss(tf.reduce_mean(out**2), updates=updates_of(network, batch[0]))


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("update", ["async", "sync"])
def test_a_step_sends_few_tensors_however_many_variables_a_model_has(tmp_path, update, index):
    """Each tensor between a replica and a ps costs both a remote call."""
    cluster = {"worker": ["127.0.0.1:1"] * 2, "ps": ["127.0.0.1:2"] * 2}
    config = {"cluster": cluster, "task": {"type": "worker", "index": index}}
    task = read_task({"TF_CONFIG": json.dumps(config), "CLUSTER_KIT_OUTPUT": str(tmp_path)})
    options = replace(QUICK, update=update)
    job = small_job(build=deep, loss=squares, clip_norm=1.0)
    made = build(job, options, replica_of(task, options, 0), Path(tmp_path))
    sent = sent_by(made.step.position.op)
    assert {"worker→ps", "ps→worker"} == {direction for direction, _ in sent}
    assert len(sent) <= 16, f"{6 * LAYERS} variables: {sorted(sent)}"
    if made.rounds and made.rounds.chief:
        sent = sent_by(made.rounds.chief.apply.op)
        assert len(sent) <= 4, sorted(sent)


def sent_by(op: tf.Operation) -> set[tuple[str, str]]:
    """Return direction and name of each tensor that running `op` sends to another job."""
    return {
        ("→".join(jobs), name)
        for after, name, before in edges(op)
        if None not in (jobs := (job_of(before), job_of(after))) and jobs[0] != jobs[1]
    }


def edges(op: tf.Operation) -> Iterator[tuple[tf.Operation, str, tf.Operation]]:
    """Yield (op, name of what it waits for, op that gives it) of all that running `op` runs."""
    seen, waiting = {op}, [op]
    while waiting:
        op = waiting.pop()
        inputs = [(given.name, given.op) for given in op.inputs if given.dtype != tf.resource]
        for name, before in [*inputs, *((f"^{given.name}", given) for given in op.control_inputs)]:
            yield op, name, before
            if before not in seen:
                seen.add(before)
                waiting.append(before)


def job_of(op: tf.Operation) -> str | None:
    return tf1.DeviceSpec.from_string(op.device).job


def test_a_pack_is_read_once_for_all_clones_and_elsewhere_a_variable_on_its_ps(graph):
    first, second = variable("first", 2), variable("second", 3)
    packed_steps.read_in_packs([first, second], "/job:worker/task:0/device:CPU:0")
    assert first.value().op.type == second.value().op.type == "SplitV"
    assert first.value().op is second.value().op
    with packs.read_on_ps([first]):
        assert first.value().op.inputs[0] is first.handle
        assert second.value().op.type == "SplitV"
    assert first.value().op is second.value().op


def test_an_update_of_another_kind_is_left_as_it_is(graph):
    counted = variable("counted", trained=False)
    plain = tf.group(counted.assign_add(1.0))
    rows = tf1.scatter_add(variable("rows", 3, trained=False), [1], [2.0]).op
    assert packed_steps.updates_in_packs([plain, rows]) == [plain, rows]


def test_what_updates_assign_is_what_they_assigned(graph):
    """Two updates of one variable, too."""
    names = ("assigned", "added", "subtracted", "twice")
    made = {
        name: tf1.get_variable(name, (2,), initializer=tf1.ones_initializer()) for name in names
    }
    given = tf.constant([3.0, 4.0])
    updates = [
        made["assigned"].assign(given * made["assigned"]).op,
        made["added"].assign_add(given).op,
        made["subtracted"].assign_sub((made["subtracted"] - given) * 0.5).op,
        made["twice"].assign_add(given).op,
        made["twice"].assign_add(given).op,
    ]
    updates += updates[:2]
    updates = packed_steps.updates_in_packs(updates)
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        for update in updates:
            session.run(update)
        found = session.run(made)
    expected = {"assigned": [3, 4], "added": [4, 5], "subtracted": [2, 2.5], "twice": [7, 9]}
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, err_msg=name)


def test_an_assignment_waits_for_what_it_waited_for(graph):
    counted, before = variable("counted", trained=False), tf.no_op("before")
    with tf.control_dependencies([before]):
        update = counted.assign_add(1.0)
    (made,) = packed_steps.updates_in_packs([update])
    assert before in {given for _, _, given in edges(made)}
