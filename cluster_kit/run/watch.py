"""Watches one run to its end: its events, users' requests, and tasks that end after the leader."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from cluster_kit.contract.endings import EXIT_OUTPUT, NOT_FAILED, STOPPED
from cluster_kit.contract.events import Start
from cluster_kit.errors import EngineError
from cluster_kit.observe import absences, user_requests
from cluster_kit.observe.listener import Listener, Timeline
from cluster_kit.observe.progress import USAGE, ProgressReader, without_values
from cluster_kit.observe.reconcile import missed
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.observe.user_requests import Asked
from cluster_kit.platforms.engine import Action, Container, Event, reaching
from cluster_kit.platforms.platform import Platform
from cluster_kit.resolved import Cluster
from cluster_kit.roles import ROLES
from cluster_kit.run.companions import Sidecars
from cluster_kit.run.known_secrets import values_of
from cluster_kit.run.recovery import Absence, EndedByEngine, Recovery
from cluster_kit.run.run import Run
from cluster_kit.run.run_directory import read_events, save_events
from cluster_kit.run.verdict import RESUME, Ending, awaited_in_vain, starved
from cluster_kit.show.view import View
from cluster_kit.util.masking import masker

FOLLOW_S = 15.0
"""Maximum seconds for servers to end after the leader; they usually need one second."""
AT_ONCE_S = 5.0
NOT_HEARD_S = 3.0
"""If the leader failed within AT_ONCE_S of its own start, or of the last start of each task that
still runs, these get NOT_HEARD_S to end: they may not have reached it, and would wait."""


def follow_s(seen: RunState) -> float:
    """Seconds for which tasks other than evaluators may continue after the leader's end."""
    leader = seen.leader
    ends = seen.ends(leader)
    if not ends or seen.tasks[leader].exit_code in (0, None):
        return FOLLOW_S
    since = ends[-1] - AT_ONCE_S
    running = [task for task in seen.tasks if task != leader and not seen.is_done(task)]
    at_once = seen.started_at(leader) > since or all(seen.started_at(it) > since for it in running)
    return NOT_HEARD_S if at_once else FOLLOW_S


STOPS_WITHIN_S = 15.0
"""Seconds: an engine that is being stopped first stops its containers, each within 10 s."""


def refuse_if_taken_away(platform: Platform, containers: Sequence[Container]) -> None:
    """Raise EndedByEngine if the leader was evicted, or its node was lost."""
    for one in containers:
        if one.leader and one.taken_away:
            raise EndedByEngine(
                f"{platform.title} has ended {one.name} in the middle of the run: {one.taken_away}",
                f"run it again: {RESUME}. {platform.takes_tasks_away}",
            )


def refuse_if_ended_by_engine(
    seen: RunState, late: Sequence[Event], lost_at: float, containers: Sequence[Container]
) -> None:
    """Raise EndedByEngine if an engine that was away has ended the leader.

    A leader that ended by itself in the meantime has an `end` event, and after a crash other tasks
    still run.

    Args:
        late: events that the engine did not report, since they happened while it was away.
        lost_at: the Unix time at which the engine was found to be away, infinity if it never was.
        containers: the cluster's present containers.
    """
    leader = seen.leader
    unheard = [event.time for event in late if (event.task, event.action) == (leader, Action.DIE)]
    if not any(end in unheard or end > lost_at - STOPS_WITHIN_S for end in seen.ends(leader)):
        return
    end = seen.end_of(leader)
    other_tasks = [c for c in containers if c.name not in (leader, *seen.evaluators)]
    stopped = end is not None and end.reason == STOPPED
    fell = end is None and bool(other_tasks) and all(c.state == "exited" for c in other_tasks)
    if seen.tasks[leader].exit_code == 0 or not (stopped or fell):
        return
    raise EndedByEngine(
        f"the Docker engine stopped in the middle of the run, and has ended {leader} with it",
        f"run it again: {RESUME}. An engine with `live-restore` lets containers live on",
    )


class Requests:
    """Reports new requests and restarts in the state of one run, and tasks ended from outside.

    Args:
        view: it shows what happens, and what the run waits for.
        running: the run's step while it waits for nothing.
        follow: called when tasks run again, to follow their logs again.
    """

    def __init__(self, view: View, running: str, follow: Callable[[], None]) -> None:
        self._view = view
        self._running = running
        self._waits = False
        self._follow = follow
        self._told: set[Asked] = set()
        self._pending: Asked | None = None
        self._told_ends: set[tuple[str, float]] = set()

    def look(self, seen: RunState, now: float) -> None:
        """Report new requests of users, that a stopped cluster continues, and what starts a task
        again that was ended from outside."""
        for one in seen.requests:
            if one not in self._told and one.tasks:
                self._begins(one, seen)
            self._told.add(one)
        pending, before = absences.pending_request(seen), self._pending
        self._pending = pending
        if before is not None and pending is None and seen.started_at(seen.leader) > before.time:
            if before.what == user_requests.STOP:
                self._view.note("the cluster was started again: the watch continues")
            self._follow()
        ended_by_hand = absences.ended_by_hand(seen)
        for task, ended in ended_by_hand.items():
            if now - ended > RESTARTED_S and (task, ended) not in self._told_ends:
                self._told_ends.add((task, ended))
                self._waits = True
                self._view.phase(f"{task} was ended: `cluster-kit restart {task}` starts it")
        continues = pending is None and not self._told_ends & {*ended_by_hand.items()}
        if self._waits and continues and seen.ended(seen.leader) is None:
            self._waits = False
            self._view.phase(self._running)

    def _begins(self, one: Asked, seen: RunState) -> None:
        """Report a request, in a text that fits a terminal with 80 columns."""
        is_back = any(start > one.time for start in seen.starts(seen.leader))
        if one.what == user_requests.STOP and is_back:
            self._view.note(absences.request_text(one, seen))
        elif one.what == user_requests.STOP:
            self._waits = True
            self._view.phase(f"stopped on request at {one.at}: `cluster-kit start` continues it")
        elif one.what == user_requests.RESTART:
            how = absences.restarted(one, seen)
            self._view.note(f"{how} at {one.at}: a user requested it")
        elif one.what in absences.FROM_PAGE:
            how = absences.FROM_PAGE[one.what]
            self._view.note(f"{one.tasks[0]} was {how} at {one.at} from the page")


POLL_S = 0.2
RESTARTED_S = 3.0
"""Seconds in which `docker restart`, and the kit for a silent task, have started a task again."""
OVERDUE_SLACK_S = 60.0
START_S = 30.0
"""Seconds: after an `up` was killed, the engine may still start containers, at 0.2 s each."""

Show = Callable[[RunState], None]


def goes_on(run: Run, cluster: Cluster) -> str:
    """The run's step from its start to its end, in a few words."""
    return f"running {cluster.name} on {run.platform.place(cluster)}"


class Watch:
    """Observes one run. `seen` is the state so far, also after an interruption."""

    def __init__(
        self,
        run: Run,
        cluster: Cluster,
        listener: Listener,
        absence: Absence,
        follow: Callable[[], None],
    ) -> None:
        self.seen = RunState.of(cluster)
        self._is_ended = False
        self._began_again = False
        self._run = run
        self._clock = run.host.clock
        self._engine = run.engine
        self._cluster = cluster
        self._timeline = Timeline(self._clock)
        output, tasks = run.directory.output, [task.name for task in cluster.tasks]
        sidecars = [one.name for one in cluster.sidecars]
        self._progress = ProgressReader(
            output, sizes=run.sizes, tasks=tasks, began=run.since, sidecars=sidecars
        )
        self._usage = ProgressReader(
            output, sizes=run.sizes, suffix=USAGE, tasks=tasks, began=run.since
        )
        requests = user_requests.read(run.directory.path)
        self._requests_read = sum(one.time < run.since for one in requests)
        self._sidecars = Sidecars(run, cluster)
        self._recovery = Recovery(run, cluster, self._timeline)
        self._listener = listener
        self._absence = absence
        self._requests = Requests(run.view, goes_on(run, cluster), follow)
        self._joins = listener.is_behind
        if self._joins:
            self._add(read_events(run.directory, run.since))
        self._mask = masker(values_of(cluster, self._containers()))
        self._began = self._clock.monotonic()
        self._too_late = False
        self._leader_restarts = 0

    def _containers(self) -> list[Container]:
        """The containers of a joined run, which alone still have the values of its secrets."""
        with contextlib.suppress(EngineError):
            return [*self._run.containers(), *self._run.sidecars()] if self._joins else []
        return []

    def until_ended(self, show: Show) -> Ending:
        """Wait until the run is over and return how it ended; calls `show` with each new state.

        Raises:
            EngineError: the engine was lost for too long, or has ended the leader.
        """
        deadlines = self._cluster.deadlines
        # Programs may wait that long for sidecars, and then for servers.
        waits = any(one.ready and one.ready.port for one in self._cluster.sidecars)
        starts_s = deadlines.start * (2 if waits else 1)
        already_s = self._run.timings.since_start_s if self._joins else 0.0
        overdue = self._clock.monotonic() + starts_s + deadlines.job + OVERDUE_SLACK_S - already_s
        while not self._is_over():
            lost_s = self._absence.total_s + absences.away_s(self.seen, self._timeline.now())
            if self._clock.monotonic() > overdue + lost_s and not self._is_blind():
                return "overdue"
            if self._sidecars.has_failed:
                return "sidecar"
            if not self._is_blind() and starved(self._cluster, self.seen):
                return "memory"
            if not self._is_blind() and awaited_in_vain(self._cluster, self.seen):
                return "no-retries"
            self._poll(show)
        self._is_ended = True
        scores = self.seen.evaluators and self.seen.tasks[self.seen.leader].exit_code == 0
        if scores:
            self._hurry_evaluators()
        waits = scores or any(task.debug for task in self._cluster.tasks)
        grace = deadlines.evaluator_grace if waits else 0.0
        deadline = self._clock.monotonic() + grace - self._absence.total_s
        while self._is_blind() or (
            not all(map(self.seen.is_done, self.seen.tasks))
            and self._clock.monotonic() < deadline + follow_s(self.seen) + self._absence.total_s
        ):
            self._poll(show)
        self._poll(show)
        return "ended"

    def _hurry_evaluators(self) -> None:
        """Give evaluators that still score a task's usual weight: they have no training to wait
        for any more, but with their own they would wait for every other container of this host."""
        with contextlib.suppress(EngineError):
            for one in self._run.containers():
                if ROLES[one.role].cpu_shares and not self.seen.is_done(one.name):
                    reaching(self._engine).weigh_as_usual(one.id)

    def _is_blind(self) -> bool:
        """Whether the state may be outdated: the engine is unreachable, or must repeat its
        events."""
        return self._absence.lasts or self._listener.is_behind

    def _poll(self, show: Show) -> None:
        self._clock.sleep(POLL_S)
        with self._absence:
            self.catch_up()
            self._complete()
            if not self._is_blind():
                self.seen = self._recovery.look(self.seen)
                self._sidecars.look(self.seen)
        if not self._listener.is_behind:
            show(self.seen)
        if self._joins and not self._is_blind():
            self._joined()

    def _joined(self) -> None:
        """Process the state of a run that the watch has joined; raises EngineError if it never
        began.

        A leader whose whole job has ended is not restarted: it would wait for its servers.
        """
        leader = self.seen.leader
        other_tasks = set(self.seen.tasks) - {leader} - self.seen.evaluators
        ended = [name for name in other_tasks if self.seen.tasks[name].state is State.ENDED]
        stopped = absences.pending_request(self.seen) is not None
        self._too_late = bool(other_tasks) and len(ended) == len(other_tasks) and not stopped
        self._joins = not self.seen.starts(leader)
        if self._joins and self._clock.monotonic() > self._began + START_S:
            raise EngineError(
                f"{leader} was never started: `up` has ended while it started the containers",
                "run it again",
            )

    def catch_up(self) -> None:
        """Add all new events and progress entries to `seen`.

        Raises:
            EngineError: the engine was lost; progress entries have been added nevertheless.
        """
        try:
            self._add(self._listener.drain())
        finally:
            self._add_requests()
            for entry in self._progress.poll():
                if self._is_of_another_life(entry.task, isinstance(entry.event, Start)):
                    continue
                shown = without_values(entry, self._mask)
                self.seen = self.seen.with_entry(self._timeline.entry(shown))
            self._requests.look(self.seen, self._timeline.now())
            for entry in self._usage.poll():
                self.seen = self.seen.with_usage(self._timeline.entry(entry))
            left_out = self._progress.left_out + self._usage.left_out
            self.seen = replace(self.seen, left_out=left_out)

    def _add_requests(self) -> None:
        new = user_requests.read(self._run.directory.path)[self._requests_read :]
        if new:
            self._requests_read += len(new)
            timely = (replace(one, time=self._timeline.of(one.time)) for one in new)
            self.seen = replace(self.seen, requests=(*self.seen.requests, *timely))

    def _complete(self) -> None:
        """Add the events that the engine did not report in time.

        Raises:
            EngineError: the engine was lost.
            EndedByEngine: it is back, and has ended the leader.
        """
        if not self._listener.is_behind:
            return
        has_repeated, now = self._listener.has_repeated, self._timeline.now()
        containers = [self._timeline.container(c) for c in self._run.containers()]
        events = missed(self.seen, containers, now)
        if events and not has_repeated:
            return
        self.seen = self.seen.with_missed(events)
        self._save(events)
        self._listener.complete(now if events else 0.0)
        if not self._joins:
            lost_at = self._timeline.of(self._absence.lost_at)
            refuse_if_ended_by_engine(self.seen, events, lost_at, containers)

    def _add(self, events: Sequence[Event]) -> None:
        """Add new events to `seen`, and save them for processes that continue the run."""
        events = [self._timeline.event(event) for event in events]
        for event in events:
            if not self._is_of_another_life(event.task, event.action == Action.START):
                self.seen = self.seen.with_event(event)
        self._save(events)

    def _is_of_another_life(self, task: str, begins: bool) -> bool:
        """Whether this is of a leader that was started again after the job's end: a verdict has
        no use for it. `docker restart` does that."""
        if not self._is_ended or task != self.seen.leader:
            return False
        self._began_again = self._began_again or begins
        return self._began_again

    def _save(self, events: Sequence[Event]) -> None:
        if events:
            with contextlib.suppress(OSError):  # the end of the run reports it
                save_events(self._run.directory, events)

    def _is_over(self) -> bool:
        """Whether the leader has ended for good; False while the engine is unreachable."""
        if self._is_blind():
            return False
        try:
            over = self._leader_ended()
        except EngineError:
            if self._engine.answers():
                raise
            return False
        if over and self.seen.tasks[self.seen.leader].exit_code:
            with self._absence:  # an engine that is being stopped first stops its containers
                self._listener.ask()
        return over and not self._is_blind()

    def _leader_ended(self) -> bool:
        """Whether the leader ended for good.

        A leader that crashed without an `end` entry is restarted, up to the manifest's `retries`. A
        leader that a user has stopped or restarts has not ended for good.
        """
        leader = self.seen.tasks[self.seen.leader]
        if leader.state is not State.ENDED and self._runs_after_the_end():
            self.seen = self.seen.before_last_start(leader.name)
            self._began_again = True
            return True
        if leader.state is not State.ENDED:
            return False
        if self._run.platform.takes_tasks_away and leader.exit_code:
            refuse_if_taken_away(self._run.platform, self._run.containers())
        removed = any(life.removed for life in self.seen.lives_of(leader.name))
        if absences.pending_request(self.seen) and not removed:
            return False
        wordless = leader.exit_code in (*NOT_FAILED, EXIT_OUTPUT)
        if wordless or self.seen.end_of(leader.name) or self._too_late:
            return True
        if absences.has_no_place(self.seen, leader.name):
            return True
        if self._leader_restarts > leader.restarts:
            return False  # restarted; the event has not arrived yet
        if self.seen.own_restarts(leader.name) >= self._cluster.retries:
            return True
        containers = self._run.containers()
        container = next((c for c in containers if c.leader), None)
        if container is None:
            return True  # a user removed it
        self._engine.start_again(container.id)
        self._leader_restarts = leader.restarts + 1
        return False

    def _runs_after_the_end(self) -> bool:
        """Whether the job ended with the leader's life before this one: other tasks have ended, and
        it would wait for them."""
        lives = self.seen.lives_of(self.seen.leader)[-2:]
        ended = lives[0].ended if len(lives) > 1 else None
        if ended is None or lives[0].exit_code not in NOT_FAILED:
            return False
        if absences.was_asked_for(self.seen, self.seen.leader, ended):
            return False
        others = self.seen.tasks.keys() - self.seen.evaluators - {self.seen.leader}
        return any(
            self.seen.tasks[name].state is State.ENDED
            and self.seen.tasks[name].exit_code == 0
            and self.seen.ends(name)[-1:] > [ended]
            for name in others
        )
