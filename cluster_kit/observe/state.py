"""The observed state of a run: the view shows it, and the verdict is made from it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar, overload

from cluster_kit.contract.endings import EVALUATOR_GRACE, FAILED, FINISHED
from cluster_kit.contract.events import End, Metrics
from cluster_kit.observe import lives, task_view
from cluster_kit.observe.hot_ps import Loads
from cluster_kit.observe.lives import Life, Lives
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.task_view import (
    GOOD_CODES,
    NO_SPEED,
    State,
    Straggler,
    TaskView,
    at_its_speed,
    begins_anew,
    code_of,
    figures,
    idle,
    is_work,
    state_after,
)
from cluster_kit.observe.usage import Use, after, sample_of
from cluster_kit.observe.user_requests import ENDS, Asked
from cluster_kit.platforms.engine import Action, Event
from cluster_kit.resolved import Cluster

NOT_THERE = (State.CREATED, State.RESTARTING, State.ENDED)
T = TypeVar("T")
CLOCK_SLACK_S = 0.05
"""Tolerance in seconds: engine and task read the same clock at different resolutions."""
LATE_S = 2.0
"""The maximum seconds from a task's first event to the engine's event of its start: a busy engine
is behind the task."""

MOST_METRICS = 1_000
"""The maximum number of metrics of a run: programs can report any number."""


class Appended(Sequence[T]):
    """An immutable sequence: appending returns a longer one in constant time.

    Both sequences share a list, and each has its own length.
    """

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)

    def and_(self, item: T) -> Appended[T]:
        """The sequence with one more item."""
        longer = Appended[T]()
        longer._items = self._items if len(self._items) == self._length else list(self)
        longer._items.append(item)
        longer._length = self._length + 1
        return longer

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._length)

    def __reversed__(self) -> Iterator[T]:
        return (self._items[index] for index in range(self._length - 1, -1, -1))

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self._items[at] for at in range(*index.indices(self._length)))
        return self._items[range(self._length)[index]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


@dataclass(frozen=True)
class RunState:
    """Everything observed of a run so far. `tasks` by name, in task order; times are Unix seconds.

    `evaluators` are the tasks that score the training, `servers` those that run no program.
    `retries` is how often the engine may restart each task, `lives` are those of each task's
    container, made from `events`. `left_out` counts lines of tasks that are not among `entries`,
    since they are invalid or exceed the limits.
    """

    tasks: dict[str, TaskView]
    leader: str
    evaluators: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()
    retries: Mapping[str, int] = field(default_factory=dict)
    events: Appended[Event] = field(default_factory=lambda: Appended())
    entries: Appended[Entry] = field(default_factory=lambda: Appended())
    requests: tuple[Asked, ...] = ()
    lives: Mapping[str, Lives] = field(default_factory=dict)
    stragglers: Mapping[str, Straggler] = field(default_factory=dict)
    uses: Mapping[str, Use] = field(default_factory=dict)
    loads: Loads = field(default_factory=Loads)
    left_out: int = 0

    @classmethod
    def of(cls, cluster: Cluster) -> RunState:
        """The state before the first observation."""
        return cls(
            {t.name: TaskView(t.name, t.role, cluster.fixed_ip(t), t.gpus) for t in cluster.tasks},
            cluster.leader.name,
            frozenset(task.name for task in cluster.evaluators),
            frozenset(task.name for task in cluster.tasks if not task.runs_program),
            {t.name: cluster.restarts(t) for t in cluster.tasks},
            loads=Loads.of(cluster),
        )

    def with_event(self, event: Event) -> RunState:
        """The state after an event of the engine; unchanged if the event is about another
        container."""
        task = self.tasks.get(event.task)
        if task is None:
            return self
        lives_of_task = lives.after(self.lives_of(task.name), event)
        now = replace(self, lives={**self.lives, task.name: lives_of_task})
        if event.action == Action.START:
            restarts, state = lives.restarts(lives_of_task), now._reported_state(task.name)
            code = code_of(now.end_of(task.name))
            task = replace(task, state=state, exit_code=code, restarts=restarts)
            if task.stepped_at and not now.is_of_last_life(task.name, task.stepped_at):
                task = replace(task, **NO_SPEED)
        elif event.action == Action.DIE:
            state = State.RESTARTING if self._comes_back(event) else State.ENDED
            code = event.exit_code
            if code in GOOD_CODES:
                code = code_of(self.end_of(task.name), code)
            task = replace(task, state=state, exit_code=code, usage=None)
        elif event.action == Action.OOM:
            task = replace(task, out_of_memory=True)
        elif event.action == Action.PAUSE:
            task = replace(task, state=State.PAUSED)
        elif event.action == Action.UNPAUSE:
            task = replace(task, state=self._reported_state(task.name))
        tasks = {**self.tasks, task.name: task}
        return replace(now, tasks=tasks, events=self.events.and_(event))

    def with_missed(self, missed: Iterable[Event]) -> RunState:
        """The state as if these events had been received when they happened."""
        tasks = {
            name: replace(
                task, state=State.CREATED, exit_code=None, restarts=0, out_of_memory=False
            )
            for name, task in self.tasks.items()
        }
        state = replace(self, tasks=tasks, lives={}, events=Appended())
        for event in sorted([*self.events, *missed], key=lambda event: event.time):
            state = state.with_event(event)
        used = {
            name: replace(task, usage=None if task.state in NOT_THERE else self.tasks[name].usage)
            for name, task in state.tasks.items()
        }
        return replace(state, tasks=used)

    def before_last_start(self, task: str) -> RunState:
        """The state after the end of the life before the last one of a task's container."""
        since, view = self.started_at(task), self.tasks[task]
        lives_of_task = self.lives_of(task)[:-1]
        code = lives_of_task[-1].exit_code
        ended = replace(view, state=State.ENDED, exit_code=code, restarts=view.restarts - 1)
        return replace(
            self,
            tasks={**self.tasks, task: ended},
            lives={**self.lives, task: lives_of_task},
            events=Appended(e for e in self.events if e.task != task or e.time < since),
            entries=Appended(e for e in self.entries if e.task != task or e.time < since),
        )

    def with_entry(self, entry: Entry) -> RunState:
        """The state after one more entry of a task's progress file."""
        entries, lag = self.entries.and_(entry), task_view.after(self.stragglers, entry)
        tasks = self.tasks
        if lag is not self.stragglers:
            tasks = {name: replace(t, straggler=lag.get(name)) for name, t in tasks.items()}
        about = task_view.reported(entry)
        if about is not None and about[0] in tasks:
            tasks = {**tasks, about[0]: replace(tasks[about[0]], **about[1])}
        task = tasks.get(entry.task)
        if task is not None:
            is_current, shown = self._is_current(entry), figures(entry, vars(task))
            state = state_after(task.state, entry) if is_current else task.state
            task = replace(task, state=state, **{**shown, **({} if is_current else NO_SPEED)})
            if isinstance(entry.event, End) and entry.event.stays and is_current:
                code = task.exit_code
                code = code_of(entry.event) if code in GOOD_CODES else code
                task = replace(task, exit_code=code, usage=None)
            tasks = {**tasks, task.name: task}
        if entry.task == self.leader and begins_anew(entry.event):
            tasks = {
                name: idle(one) if name in self.servers else one for name, one in tasks.items()
            }
        loads = self.loads.with_entry(entry)
        return replace(self, tasks=tasks, entries=entries, stragglers=lag, loads=loads)

    def with_usage(self, entry: Entry) -> RunState:
        """The state after one more line of a task's usage file."""
        sample, task = sample_of(entry), self.tasks.get(entry.task)
        if sample is None or task is None:
            return self
        use = after(self.uses.get(task.name), sample)
        if self._is_current(entry) and task.state not in NOT_THERE:
            task = at_its_speed(replace(task, usage=use.now), entry.time)
        tasks, loads = {**self.tasks, task.name: task}, self.loads.with_sample(sample)
        if loads.hot is not self.loads.hot:
            hot = loads.lasting
            tasks = {name: replace(one, hot=hot.get(name)) for name, one in tasks.items()}
        return replace(self, tasks=tasks, uses={**self.uses, task.name: use}, loads=loads)

    def _comes_back(self, death: Event) -> bool:
        """Whether the engine will restart the task; not if a user stopped it."""
        by_hand = any(life.kills for life in lives.since_start(self.lives_of(death.task)))
        restarts_left = self.retries.get(death.task, 0) - self.own_restarts(death.task)
        return restarts_left > 0 and bool(death.exit_code) and not by_hand

    def own_restarts(self, task: str) -> int:
        """How often the engine restarted a task since a user last requested its restart."""
        times = [one.time for one in self.requests if task in one.tasks and one.what in ENDS]
        if not times:
            return self.tasks[task].restarts
        return max(0, sum(start > times[-1] for start in self.starts(task)) - 1)

    def _reported_state(self, task: str) -> State:
        """The state of a running task by its own entries since its last start."""
        state = State.RUNNING
        for entry in self.entries:
            if entry.task == task and self._is_current(entry):
                state = state_after(state, entry)
        return state

    def _is_current(self, entry: Entry) -> bool:
        """Whether an entry was written in the last life of its task's container."""
        return self.is_of_last_life(entry.task, entry.time)

    def is_of_last_life(self, task: str, time: float) -> bool:
        """Whether a task's report with this time is of the last life of its container."""
        started, before = self.started_at(task), self.lives_of(task)[:-1]
        ends = (started if life.ended is None else life.ended for life in before)
        since = max([started - LATE_S, *ends])
        return time >= min(since, started - CLOCK_SLACK_S)

    def lives_of(self, task: str) -> Lives:
        """The lives of a task's container, oldest first."""
        return self.lives.get(task, ())

    def starts(self, task: str) -> list[float]:
        """The Unix times at which a task's container started."""
        return lives.starts(self.lives_of(task))

    def ends(self, task: str) -> list[float]:
        """The Unix times at which a task's container ended."""
        return lives.ends(self.lives_of(task))

    def started_at(self, task: str) -> float:
        """Unix seconds of a task's last start, 0 if there was none."""
        return max(self.starts(task)[-1:], default=0.0)

    def last(self, task: str, event: type[T]) -> tuple[float, T] | None:
        """The newest event of this kind by this task, with its time; None if there is none."""
        for entry in reversed(self.entries):
            if entry.task == task and isinstance(entry.event, event):
                return entry.time, entry.event
        return None

    def ended(self, task: str) -> tuple[float, End] | None:
        """The `end` event of a task since its container's last start, with its time, or None.

        Reports of a container on a lost node, which is cut off from the others, are ignored.
        """
        end = self.last(task, End)
        if end is None or not self.is_of_last_life(task, end[0]):
            return None
        lives_of_task = lives.since_start(self.lives_of(task))
        return None if any(_is_void(end[0], life) for life in lives_of_task) else end

    def end_of(self, task: str) -> End | None:
        """The `end` event that `ended` returns, without its time; or None."""
        end = self.ended(task)
        return None if end is None else end[1]

    def final_failures(self, task: str) -> list[End]:
        """The task's failures, oldest first; [] if it worked again after the last one.

        A success after the leader has failed, when tasks are stopped, does not count as work.
        """
        failures: list[End] = []
        works = False
        leaders_end = self.ended(self.leader)
        stopped_from = leaders_end[0] if leaders_end and leaders_end[1].exit_code else math.inf
        for entry in self.entries:
            if entry.task != task:
                continue
            if isinstance(entry.event, End) and entry.event.reason == FAILED:
                failures.append(entry.event)
                works = False
            elif not isinstance(entry.event, End) or entry.time < stopped_from:
                works = works or _is_success(entry)
        return [] if works else failures

    def late_end(self, evaluator: str) -> End | None:
        """The last `end` event of an evaluator if its grace was over then; the engine may have
        started it again since."""
        end = self.last(evaluator, End)
        return end[1] if end is not None and end[1].reason == EVALUATOR_GRACE else None

    def is_done(self, task: str) -> bool:
        """Whether a task has nothing left to do after the leader's end.

        It has ended, too, or was restarted too late. An evaluator may still have to score the
        model of a successful training, until its grace is over: the engine then starts it once
        more.
        """
        state = self.tasks[task].state
        if state is State.ENDED:
            return True
        if task in self.evaluators and self.tasks[self.leader].exit_code == 0:
            return self.late_end(task) is not None
        ended = max(self.ends(self.leader), default=0.0)
        return state is State.RESTARTING or self.started_at(task) > ended

    def devices(self, task: str) -> list[str] | None:
        """The GPUs that TensorFlow found on a task, None if unknown."""
        seen = self.tasks[task].gpus_seen
        return None if seen is None else list(seen)

    def metrics(self) -> dict[str, Any]:
        """The newest value of each reported metric, by name."""
        newest: dict[str, Any] = {}
        for entry in self.entries:
            if isinstance(entry.event, Metrics):
                reported = entry.event.values
                new = [name for name in reported if name not in newest]
                left_out = set(new[max(0, MOST_METRICS - len(newest)) :])
                newest |= {k: v for k, v in reported.items() if k not in left_out}
        return newest


def _is_void(time: float, life: Life) -> bool:
    """Whether a container reported this after its node was lost."""
    return life.lost is not None and life.lost < time


def _is_success(entry: Entry) -> bool:
    """Whether the entry shows training, or a success that is not just the job's end."""
    if not isinstance(entry.event, End):
        return is_work(entry)
    return entry.event.reason == FINISHED and not entry.event.after_job
