"""The tasks of a cluster that nobody has watched, by their containers and what they wrote. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from cluster_kit.observe import devices, stragglers
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import CLOCK_SLACK_S, NOT_THERE
from cluster_kit.observe.stragglers import Straggler
from cluster_kit.observe.task_view import State, TaskView, figures, state_after
from cluster_kit.observe.usage import of_samples, sample_of
from cluster_kit.observe.user_requests import ENDS, Asked
from cluster_kit.platforms.engine import Container


def from_containers(
    containers: Iterable[Container],
    entries: Sequence[Entry],
    usage: Sequence[Entry] = (),
    requests: Sequence[Asked] = (),
) -> list[TaskView]:
    """The tasks of a cluster that was not watched from its start, in the order of `containers`.

    Args:
        entries: of all tasks' progress files since the containers were created, oldest first.
        usage: likewise of their usage files.
        requests: what a person has asked since then.
    """
    uses = of_samples(sample for entry in usage if (sample := sample_of(entry)))
    lag, found = stragglers.current(entries), devices.by_task(entries)
    wishes = [one for one in requests if one.what in ENDS]
    views = [
        _view(
            c,
            [entry for entry in entries if entry.task == c.name],
            lag.get(c.name),
            sum(c.name in one.tasks and one.time < c.started for one in wishes),
        )
        for c in containers
    ]
    views = [replace(view, **found.get(view.name, {})) for view in views]
    return [
        replace(view, usage=uses[view.name].now)
        if view.name in uses and view.state not in NOT_THERE
        else view
        for view in views
    ]


def births(entries: Iterable[Entry]) -> list[float]:
    """When each life of a task's container began, as the task itself told, a moment later.

    A server tells it when it is ready, any other task when it begins.
    """
    entries = list(entries)
    begun = [e.time for e in entries if e.event == "start" and e.fields.get("attempt") == 1]
    return begun or [entry.time for entry in entries if entry.event == "ready"]


def _view(
    container: Container, entries: Sequence[Entry], straggler: Straggler | None, wished: int
) -> TaskView:
    """A task; `wished` is how often a person had it started again, which the engine forgets."""
    state = State.of_engine(container.state)
    newest_figures: dict[str, Any] = {}
    for entry in entries:
        if entry.time >= container.started - CLOCK_SLACK_S:
            state = state_after(state, entry)
        newest_figures |= figures(entry)
    # The engine counts a restart before it happens, and does not count restarts by `up`.
    counted = container.restarts - (state is State.RESTARTING) + wished
    return TaskView(
        name=container.name,
        role=container.role,
        ip=container.ip,
        gpus=container.gpus,
        state=state,
        exit_code=container.exit_code,
        restarts=max(counted, len(births(entries)) - 1),
        straggler=straggler,
        **newest_figures,
    )
