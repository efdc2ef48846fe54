"""Steps that are counted in a program's process, with toys in place of Keras.

Which optimizer counts, and what is written.
"""

from __future__ import annotations

import json
import math
import os
import types
from pathlib import Path

import pytest

from trainer.agent.injected import steps
from trainer.agent.injected.steps import Counter, Watch


def test_which_optimizer_counts():
    counter = Counter()
    assert counter.look({}) is None
    assert counter.look({1: 0, 2: 0}) is None
    # Of two that are used in turn, the one with more updates counts.
    assert counter.look({1: 3, 2: 9}) == 9
    assert counter.look({1: 4, 2: 9}) == 9
    assert counter.look({1: 4, 2: 12}) == 12
    # A second model after the first: 1 made 16 more steps.
    assert counter.look({1: 20, 2: 12}) == 28


def test_a_continued_checkpoint_and_a_step_back():
    counter = Counter()
    assert [counter.look({1: count}) for count in (500, 510, 500)] == [500, 510, 500]


def test_steps_of_successive_models_are_added():
    counter = Counter()
    assert counter.look({1: 100}) == 100
    assert counter.look({2: 1}) == 101  # the first one no longer exists
    assert [counter.look({2: count}) for count in (50, 50, 60)] == [150, 150, 160]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "worker-0.jsonl"
    path.touch()
    return path


class Toy:
    """An optimizer and its variable."""

    def __init__(self) -> None:
        self.variable = types.SimpleNamespace(count=0)

    def makes(self, count: int) -> None:
        self.variable.count = count


@pytest.fixture
def watch(file: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Returns a watch without its thread: the test calls it."""
    monkeypatch.setattr(steps, "updates_of", lambda optimizer: optimizer.variable)
    monkeypatch.setattr(steps, "int_value", lambda variable: variable and variable.count)
    made = Watch(str(file), epochs=True)
    made._process = os.getpid()
    return made


def written(file: Path) -> list[dict]:
    found = [json.loads(line) for line in file.read_text().splitlines()]
    for event in found:
        assert event.pop("time") > 1e9
    return found


def test_the_speed_of_slow_steps_is_not_that_of_one_look() -> None:
    speed = steps.Speed()
    looks = [(now, int(now / 1.9)) for now in range(2, 30)]
    new = [look for at, look in enumerate(looks) if not at or look[1] > looks[at - 1][1]]
    found = [speed.of(float(now), step) for now, step in new]
    assert found[0] is None
    assert all(one == pytest.approx(1 / 1.9, abs=0.1) for one in found[5:])


def test_a_look_at_the_end_of_an_epoch_shortens_no_speed() -> None:
    speed = steps.Speed()
    assert [speed.of(*look) for look in ((0.0, 0), (1.0, 50), (1.1, 51), (2.1, 100))] == [
        None, 50.0, 46.364, 49.0,
    ]  # fmt: skip


def test_the_speed_after_a_pause_or_a_return_does_not_include_what_was_before() -> None:
    speed = steps.Speed()
    speed.of(0.0, 10)
    assert (speed.of(60.0, 20), speed.of(61.0, 22), speed.of(62.0, 5)) == (0.167, 2.0, None)


def test_only_new_steps_are_written(watch, file):
    optimizer = Toy()
    watch.remember(optimizer)
    assert watch.look(0.0) and not written(file)
    optimizer.makes(10)
    watch.look(1.0)
    watch.look(2.0)
    optimizer.makes(30)
    watch.logs = {"loss": 0.5}
    watch.look(5.0)
    assert written(file) == [
        {"event": "step", "step": 10, "counted": True},
        {"event": "step", "step": 30, "steps_per_s": 5.0, "loss": 0.5, "counted": True},
    ]
    optimizer.makes(33)
    del optimizer
    assert watch.look(6.0) and written(file)[2]["step"] == 33  # the steps until its end
    assert watch.look(7.0) and len(written(file)) == 3
    assert not watch._optimizers and not watch._variables


def test_a_loss_that_is_not_finite(watch, file):
    """A supervisor rejects NaN, so it gets a separate line."""
    optimizer = Toy()
    watch.remember(optimizer)
    optimizer.makes(1)
    watch.logs = {"loss": math.nan}
    watch.look(0.0)
    without, nan = written(file)
    assert "loss" not in without and math.isnan(nan["loss"])


@pytest.mark.parametrize("logs", [None, [1], {"loss": "low"}, {"loss": True}, {"loss": object()}])
def test_logs_without_a_loss(watch, file, logs):
    optimizer = Toy()
    watch.remember(optimizer)
    optimizer.makes(1)
    watch.logs = logs
    assert watch.look(0.0)
    assert written(file) == [{"event": "step", "step": 1, "counted": True}]


def test_epochs(watch, file):
    one_class = types.SimpleNamespace(ndim=1, size=1, item=lambda: 0.625)
    classes = types.SimpleNamespace(ndim=1, size=3)
    watch.epoch_ended(0, {"loss": 0.5, "sparse_categorical_accuracy": 0.75, "val_acc": 0.7,
                          "val_loss": float("nan"), "mae": 0.25, "val_auc": 0.9, "lr": "low",
                          "f1": float("inf"), 7: 1.0, "f1_score": one_class,
                          "f1_each": classes})  # fmt: skip
    watch.epoch_ended("first", {"loss": 0.5})
    watch.epoch_ended(1, None)
    assert watch.look(0.0)
    first, diverged, second = written(file)
    assert first == {
        "event": "epoch",
        "epoch": 1,
        "accuracy": 0.75,
        "val_accuracy": 0.7,
        "scores": {"mae": 0.25, "val_auc": 0.9, "f1_score": 0.625},
        "loss": 0.5,
        "counted": True,
    }
    assert math.isnan(diverged.pop("val_loss")) and math.isinf(diverged["scores"].pop("f1"))
    assert diverged == first
    assert second == {"event": "epoch", "epoch": 2, "counted": True}


def say(file: Path, line: str) -> None:
    with file.open("a") as opened:
        opened.write(line + "\n")


def test_the_kit_stops_counting_if_the_program_reports_steps(watch, file):
    for line in ('{"event": ["step"]}', '"step"', '{"step": 1}', "step", '{"event": "step"'):
        say(file, line)
    say(file, '{"event": "step", "step": 4, "counted": true}')
    assert watch.look(0.0)
    say(file, '{"event": "epoch", "epoch": 4}')
    watch.epoch_ended(0, {"loss": 1.0})
    before = file.read_text()
    assert watch.look(1.0) and file.read_text() == before
    say(file, '{"event": "step", "step": 5}')
    assert not watch.look(2.0)


def test_reports_of_an_earlier_attempt_do_not_count(file):
    say(file, '{"event": "step", "step": 5}')
    say(file, '{"event": "start", "attempt": 2}')
    watch = Watch(str(file), epochs=True)
    assert watch.look(0.0)
    say(file, '{"event": "step", "step": 6}')
    assert not watch.look(1.0)


def test_a_missing_file_or_a_fifo(watch, file):
    optimizer = Toy()
    watch.remember(optimizer)
    file.unlink()
    optimizer.makes(1)
    assert watch.look(0.0)
    os.mkfifo(file)
    optimizer.makes(2)
    assert watch.look(1.0)


def test_the_first_process_of_a_program_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTER_KIT_MAILBOX", str(tmp_path))
    assert [steps.claimed(), steps.claimed()] == [True, False]
    (tmp_path / "steps-of").unlink()
    (tmp_path / "steps-of").symlink_to(str(2**22 + 1))  # no process can have this number
    assert [steps.claimed(), steps.claimed()] == [True, False]


@pytest.mark.parametrize(
    ("device", "here"),
    [
        ("/job:localhost/replica:0/task:0/device:CPU:0", True),
        ("", True),
        ("/job:worker/replica:0/task:1/device:GPU:0", True),
        ("/job:worker/replica:0/task:0/device:CPU:0", False),
        ("/job:ps/replica:0/task:1/device:CPU:0", False),
    ],
)
def test_which_keras_is_loaded_in_this_process(device, here, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"task": {"type": "worker", "index": 1}}')
    assert steps.is_here(device) is here


def toy_keras() -> types.SimpleNamespace:
    """Returns a Keras with everything that the hooks use."""

    class Base:
        def __init__(self) -> None:
            self.variable = types.SimpleNamespace(count=0)

        def apply(self, updates: int = 1) -> int:
            self.variable.count += updates
            return self.variable.count

    class Optimizer(Base):
        def apply_gradients(self, updates: int = 1) -> int:
            return self.apply(updates=updates)

    class CallbackList:
        def __init__(self) -> None:
            self.called: list = []
            self.model = types.SimpleNamespace()

        def on_train_begin(self, logs: object = None) -> None:
            self.called.append(("begin", logs))

        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            self.called.append((epoch, logs))

        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            self.called.append((batch, logs))

    return types.SimpleNamespace(
        callbacks=types.SimpleNamespace(CallbackList=CallbackList),
        optimizers=types.SimpleNamespace(Optimizer=Optimizer),
    )


def test_keras_behaves_as_before(watch, monkeypatch):
    monkeypatch.setattr(steps, "the_watch", lambda epochs: watch)
    keras = toy_keras()
    steps.prepare(keras, ["steps", "epochs"])
    steps.prepare(keras, ["steps", "epochs"])  # a second call changes nothing
    optimizer = keras.optimizers.Optimizer()
    assert [optimizer.apply_gradients(5), optimizer.apply_gradients(updates=2)] == [5, 7]
    with pytest.raises(TypeError, match="unexpected"):
        optimizer.apply_gradients(speed=1)
    calls = keras.callbacks.CallbackList()
    calls.on_train_begin()
    calls.on_train_batch_end(0, logs={"loss": 1})
    calls.on_epoch_end(0, {"loss": 2})
    assert calls.called == [("begin", None), (0, {"loss": 1}), (0, {"loss": 2})]
    assert watch.logs == {"loss": 1} and len(watch._ended) == 1
    assert [one() for one in watch._optimizers.values()] == [optimizer]


@pytest.mark.parametrize("way", ["apply", "apply_gradients"])
def test_an_optimizer_that_is_only_restored_has_made_no_steps(watch, file, monkeypatch, way):
    monkeypatch.setattr(steps, "the_watch", lambda epochs: watch)
    keras = toy_keras()
    steps.prepare(keras, ["steps"])
    optimizer = keras.optimizers.Optimizer()
    optimizer.variable.count = 800
    assert watch.look(0.0) and written(file) == []
    getattr(optimizer, way)()
    assert watch.look(1.0)
    assert [event["step"] for event in written(file)] == [801]


class CollectiveAllReduceStrategy:
    num_replicas_in_sync = 3
    extended = types.SimpleNamespace(_in_multi_worker_mode=lambda: True)


@pytest.mark.parametrize(
    ("strategy", "method", "loss"),
    [
        (CollectiveAllReduceStrategy(), "auto", 0.5),
        (CollectiveAllReduceStrategy(), "first", 1.5),
        (types.SimpleNamespace(num_replicas_in_sync=3), "auto", 1.5),
    ],
)
def test_a_loss_that_keras_adds_up_over_workers(watch, file, monkeypatch, strategy, method, loss):
    monkeypatch.setattr(steps, "the_watch", lambda epochs: watch)
    keras = toy_keras()
    steps.prepare(keras, ["steps", "epochs"])
    calls = keras.callbacks.CallbackList()
    calls.model.distribute_strategy = strategy
    calls.model.distribute_reduction_method = method
    calls.on_train_begin()
    optimizer = keras.optimizers.Optimizer()
    optimizer.apply()
    calls.on_train_batch_end(0, {"loss": 1.5})
    watch.look(0)
    assert [event["loss"] for event in written(file)] == [loss]


def test_of_a_coordinator_only_epochs_are_counted(watch, monkeypatch):
    monkeypatch.setattr(steps, "the_watch", lambda epochs: watch)
    keras = toy_keras()
    plain = keras.optimizers.Optimizer.apply_gradients
    batch = keras.callbacks.CallbackList.on_train_batch_end
    steps.prepare(keras, ["epochs"])
    assert keras.optimizers.Optimizer.apply_gradients is plain
    assert keras.callbacks.CallbackList.on_train_batch_end is batch


def test_an_unknown_kind_of_keras_is_not_changed(watch, monkeypatch):
    monkeypatch.setattr(steps, "the_watch", lambda epochs: watch)

    class CallbackList:
        def on_epoch_end(self, epoch, batch, logs): ...

    plain = CallbackList.on_epoch_end
    for keras in (
        types.SimpleNamespace(callbacks=None),
        types.SimpleNamespace(callbacks=types.SimpleNamespace(CallbackList=CallbackList)),
    ):
        steps.prepare(keras, ["steps", "epochs"])
    assert CallbackList.on_epoch_end is plain


SAYS_HOOKS = "import os; print('hooks', os.environ['CLUSTER_KIT_AFTER_IMPORT'])"


def test_which_programs_are_watched(run_task, program):
    """Trainers, and of a coordinator only its epochs; not programs for TensorFlow 1, nor
    evaluators."""
    workers = {"worker": ["127.0.0.1:1"]}

    def hooks(name: str, cluster: dict, **variables: str) -> set[str]:
        task = run_task(name, cluster, "run", program(SAYS_HOOKS), **variables)
        output = task.communicate(timeout=60)[0]
        assert task.returncode == 0, output
        words = next(line for line in output.splitlines() if "hooks " in line).split("hooks ")[1]
        return {"steps", "epochs", "closures"} & set(words.split(","))

    assert hooks("worker-0", workers) == {"steps", "epochs"}
    assert hooks("worker-0", workers, CLUSTER_KIT_COUNT_STEPS="off") == set()
    assert hooks("worker-0", workers, CLUSTER_KIT_OLD_API="on") == set()
    with_ps = {"chief": ["127.0.0.1:2"], "ps": ["127.0.0.1:3"], **workers}
    assert hooks("chief-0", with_ps) == {"epochs", "closures"}
    programs = {"CLUSTER_KIT_SERVERS": ""}  # each task runs the program, and may start its server
    assert hooks("chief-0", with_ps, **programs) == {"steps", "epochs", "closures"}
    assert hooks("chief-0", with_ps, CLUSTER_KIT_OLD_API="on", **programs) == set()
