"""How a task's time is divided, from simulated traces in TensorFlow's format."""

from __future__ import annotations

import pytest
from made_up import TO_PS, awaited, event, trace

from trainer.agent.profiling.breakdown import exclusive, longest, runs_of, task_facts
from trainer.agent.profiling.traces import (
    COMPUTE,
    DISPATCH,
    IDLE,
    INPUT,
    SENDING,
    WAITING,
    Work,
    op_of,
    receiver,
    traced,
)


def test_a_workers_step_is_divided_into_parts_that_add_up():
    seen = trace(
        event("RunGraph", 0, 90),
        *awaited("w/Read/_S11", "_Recv", 0, 30, key=1),
        *awaited("IteratorGetNext", "IteratorGetNext", 30, 10, key=2),
        event("cnn/conv2d/Relu:_MklNativeFusedConv2D", 40, 25),
        event("gradient/_77:_Send", 65, 5, key=TO_PS),
    )
    facts = task_facts(seen)
    assert facts["shares"] == {
        "compute": 0.25, "sending": 0.05, "input": 0.1, "waiting": 0.3, "dispatch": 0.2,
        "idle": 0.1,
    }  # fmt: skip
    assert sum(facts["shares"].values()) == pytest.approx(1)
    assert (facts["seconds"], facts["runs"], facts["waits_for"]) == (0.1, 1, "variables")
    assert facts["longest_ops"][0] == {
        "name": "cnn/conv2d/Relu", "op": "_MklNativeFusedConv2D", "count": 1, "ms": 25,
    }  # fmt: skip
    assert facts["longest_waits"] == [{"name": "w/Read/_S11", "op": "_Recv", "count": 1, "ms": 30}]


def test_activities_during_a_computation_do_not_count():
    works = [
        Work(WAITING, 0, 10), Work(COMPUTE, 2, 5), Work(COMPUTE, 4, 6), Work(SENDING, 5, 8),
        Work(INPUT, -5, 1), Work(DISPATCH, 0, 99),
    ]  # fmt: skip
    assert exclusive(works, 20) == {
        COMPUTE: 4, SENDING: 2, INPUT: 1, WAITING: 3, DISPATCH: 10, IDLE: 0,
    }  # fmt: skip


def test_a_task_without_events_was_idle():
    facts = task_facts(trace())
    assert facts["shares"]["idle"] == 1
    assert (facts["runs"], facts["longest_ops"], facts["waits_for"]) == (0, [], "")


def test_time_in_which_a_profiler_only_saves_does_not_count():
    assert traced(began=1_000, stop=4_000, asked=2_000) == 2_000
    assert traced(began=1_000, stop=2_500, asked=2_000) == 1_500
    assert traced(began=1_000, stop=0, asked=2_000) == 2_000


def test_a_wait_that_has_begun_before_the_trace_or_ends_after_it_counts():
    """A step can take longer than a trace; its input would be missing, and the task look idle."""
    _, ended = awaited("IteratorGetNext", "IteratorGetNext", 0, 40, key=1)
    started, _ = awaited("IteratorGetNext", "IteratorGetNext", 60, 99, key=2)
    shares = task_facts(trace(ended, started))["shares"]
    assert (shares["input"], shares["idle"]) == (0.8, pytest.approx(0.2, abs=0.01))
    received, _ = awaited("w", "_Recv", 30, 99, key=3)
    assert task_facts(trace(received))["shares"]["waiting"] == 0.7


def test_of_waits_whose_ends_were_lost_only_the_newest_goes_on():
    lost, _ = awaited("w", "_Recv", 0, 10, key=1)
    seen = trace(lost, *awaited("w", "_Recv", 50, 10, key=2))
    assert task_facts(seen)["shares"]["waiting"] == 0.1


def test_a_ps_waits_for_gradients_and_an_all_reduce_for_the_others():
    received = awaited("gradient/_86", "_Recv", 0, 30, key=1)
    assert task_facts(trace(*received, task="ps-0"))["waits_for"] == "gradients"
    reduced = awaited("CollectiveReduceV2", "CollectiveReduceV2", 0, 30, key=1)
    beside = event("CollectiveReduceV2:CollectiveReduceV2", 1, 20)
    facts = task_facts(trace(*reduced, beside))
    assert facts["waits_for"] == "the others of an all-reduce"
    assert [wait["ms"] for wait in facts["longest_waits"]] == [30], "once, not twice"


def test_input_that_is_prepared_in_parallel_is_not_waited_for():
    ahead = trace(event("Resize:ResizeBilinear", 0, 50), thread="tf_data_private_threadpool")
    assert task_facts(ahead)["shares"]["idle"] == 1
    received = awaited("PyFunc/_4", "_Recv", 0, 50, key=1)
    from_the_chief = trace(*received, thread="tf_data_private_threadpool")
    assert task_facts(from_the_chief)["shares"]["idle"] == 1
    asked = trace(event("IteratorGetNextOp::DoCompute", 0, 50))
    assert task_facts(asked)["shares"]["input"] == 0.5


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Adam/sub_18:Sub", ("Adam/sub_18", "Sub")),
        ("Sum_4/_43:_Send", ("Sum_4/_43", "_Send")),
        ("EagerService:Enqueue", ("", "")),
        ("EagerLocalExecute: __inference_train_1", ("", "")),
        ("ExecutorState::Process", ("", "")),
        ("Iterator::Root::Prefetch", ("", "")),
        ("train", ("", "")),
    ],
)
def test_ops_are_distinguished_from_the_code_that_runs_them(name, found):
    assert op_of(name) == found


@pytest.mark.parametrize(
    ("names", "runs"),
    [
        (["train"] * 3 + ["EagerExecute"], 3),
        (["RunGraph"] * 2, 2),
        (["EagerLocalExecuteAsync: __inference_train_function_1_partitioned_2_1"] * 4, 4),
        (["Adam/sub:Sub"], 0),
    ],
)
def test_runs_are_counted_by_the_outermost_events(names, runs):
    assert runs_of(trace(*(event(name, at, 1) for at, name in enumerate(names)))) == runs


def test_an_eager_op_is_not_a_run_but_a_function_is():
    seen = trace(event("EagerExecute", 0, 1, is_func=1), event("EagerExecute", 2, 1, is_func=0))
    assert runs_of(seen) == 1


def test_times_of_ops_are_added_up_by_node():
    works = [Work(COMPUTE, 0, 1e6, "a", "Sub"), Work(COMPUTE, 5e6, 8e6, "b", "Sub"),
             Work(COMPUTE, 2e6, 5e6, "a", "Sub")]  # fmt: skip
    assert [(one["name"], one["count"], one["ms"]) for one in longest(works)] == [
        ("a", 2, 4.0), ("b", 1, 3.0),
    ]  # fmt: skip


def test_a_sent_tensor_names_its_receiver():
    assert receiver(TO_PS) == "ps-0"
    assert receiver(TO_PS.replace("/job:ps/", "/job:master/")) == "chief-0"
    assert receiver("no key") == ""
