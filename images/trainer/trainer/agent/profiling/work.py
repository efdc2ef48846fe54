"""What each event of a trace is: compute, waiting, sending, input or dispatch. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from trainer.agent.profiling.planes import Event, Trace

COMPUTE, SENDING, INPUT, WAITING, DISPATCH, IDLE = (
    "compute", "sending", "input", "waiting", "dispatch", "idle",
)  # fmt: skip
ORDER = (COMPUTE, SENDING, INPUT, WAITING, DISPATCH)
"""At a moment at which several things go on, it counts as the first of these."""
STARTED, DONE = "ExecutorState::ProcessAsync::Start", "ExecutorState::ProcessAsync::Done"
COLLECTIVE = "Collective"
RECEIVE, SEND, NEXT = "_Recv", "_Send", "IteratorGetNext"
BACKGROUND = "tf_data"
_OP = re.compile(r"^(?P<node>.*[^:]):(?P<kind>_?[A-Za-z][A-Za-z0-9_]*)$")
_NO_OPS = ("EagerService", "Iterator::")
NOT_WORK = ("ThreadpoolListener::", "MemoryAllocation", "MemoryDeallocation")
_TASK_OF_KEY = re.compile(r"/job:(\w+)/replica:\d+/task:(\d+)/")


@dataclass(frozen=True)
class Work:
    """A stretch of time and what it was; nanoseconds since the trace began. `name`: the op's."""

    kind: str
    begin: float
    end: float
    name: str = ""
    op: str = ""


def op_of(name: str) -> tuple[str, str]:
    """(node, type) of an op's event, such as `cnn/conv2d/Relu:_FusedConv2D`; ("", "") if none."""
    found = _OP.match(name)
    if not found or name.startswith(_NO_OPS) or "::" in name:
        return "", ""
    return found["node"], found["kind"]


def receiver(key: str) -> str:
    """The task that a tensor is sent to, by the key of its rendezvous: `ps-0`; "" if unknown."""
    tasks = _TASK_OF_KEY.findall(key)
    if len(tasks) < 2:
        return ""
    job, index = tasks[1]
    return f"{'chief' if job == 'master' else job}-{index}"


def works_of(trace: Trace) -> list[Work]:
    """All that the task did and waited for, in no order."""
    found = list(_awaited(trace))
    for thread in trace.threads:
        background = thread.name.startswith(BACKGROUND)
        for event in thread.events:
            if event.name.startswith(NOT_WORK) or event.duration <= 0:
                continue
            if thread.gpu:
                found.append(Work(COMPUTE, event.begin, event.end, event.name, "GPU"))
            elif not background:  # prefetched beside the step: it costs the step nothing
                found.append(_work(event))
    return found


def _work(event: Event) -> Work:
    node, op = op_of(event.name)
    if NEXT in event.name:
        return Work(INPUT, event.begin, event.end, node or event.name, NEXT)
    if not op or op.startswith("__"):
        return Work(DISPATCH, event.begin, event.end)
    if op.startswith(COLLECTIVE):  # a part of what is awaited, which _awaited has whole
        return Work(DISPATCH, event.begin, event.end)
    kind = SENDING if op == SEND else WAITING if op == RECEIVE else COMPUTE
    return Work(kind, event.begin, event.end, node, op)


def _awaited(trace: Trace) -> Iterator[Work]:
    """Ops that no thread stands in: from when one was started until it was done."""
    started: dict[object, list[Event]] = defaultdict(list)
    events = [event for thread in trace.threads for event in thread.events]
    for event in sorted(events, key=lambda one: one.begin):
        if event.name == STARTED:
            started[event.stats.get("_p")].append(event)
        elif event.name == DONE and started[event.stats.get("_c")]:
            first = started[event.stats.get("_c")].pop(0)
            node, op = str(first.stats.get("name", "")), str(first.stats.get("kernel_type", ""))
            if op == RECEIVE or op.startswith(COLLECTIVE):
                yield Work(WAITING, first.begin, event.begin, node, op)
            elif op.startswith(NEXT):
                yield Work(INPUT, first.begin, event.begin, node, op)
