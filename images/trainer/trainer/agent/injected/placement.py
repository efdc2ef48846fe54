"""Records which ps holds which variable of a user's program, when the program creates them.

TensorFlow keeps no list of these variables. A thread appends an event to the leader's progress
file. It keeps only the name, device and size of a variable. This file is also loaded by its path
(on_path/), so it imports nothing from this package.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping

MOST = 200
"""Maximum number of variables in an event; beyond them, one entry has the rest of each task."""
REST = "others"
ON = re.compile(r"/job:(\w+).*?/task:(\d+)")
LOOK_S = 1.0
MOST_KEPT, MOST_EVENTS = 5_000, 20
"""Maximum numbers of recorded variables and of events: a program may create variables in each
step."""
PROGRESS = "CLUSTER_KIT_PROGRESS"
Sizes = Mapping[tuple[str, str], int]
"""Bytes by name and task."""


def sized(part: object) -> tuple[tuple[str, str], int] | None:
    """Return ((name, task), bytes) of a variable; None if it is not on a task."""
    on = ON.search(part.device or "")
    if on is None:
        return None
    name = part.name.partition(":")[0]
    return (name, f"{on[1]}-{on[2]}"), part.dtype.size * (part.shape.num_elements() or 0)


def ranked(sizes: Sizes) -> list[dict[str, object]]:
    """Return `{"name": "dense/kernel", "on": "ps-1", "bytes": 4096, "order": 0}` for each, largest
    first; `order` counts them as they were created."""
    order = {key: number for number, key in enumerate(sizes)}
    by_size = sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0]))
    named, rest = by_size[:MOST], by_size[MOST:]
    left: dict[tuple[str, str], int] = {}
    for (_, on), size in rest:
        left[REST, on] = left.get((REST, on), 0) + size
    shown = [
        {"name": name, "on": on, "bytes": size, "order": order[name, on]}
        for (name, on), size in named
    ]
    return [
        *shown,
        *({"name": name, "on": on, "bytes": size} for (name, on), size in sorted(left.items())),
    ]


def note() -> bool:
    """Record variables that a ParameterServerStrategy or a TensorFlow 1 session creates from now
    on; return False if this TensorFlow has neither."""
    noted: dict[tuple[str, str], int] = {}
    found = [in_strategy(noted), in_sessions(noted)]
    if any(found):
        threading.Thread(target=say, args=(noted,), name="placement", daemon=True).start()
    return any(found)


def in_strategy(noted: dict[tuple[str, str], int]) -> bool:
    """Record each variable, or part of a variable, that a coordinator's program puts on a ps."""
    try:
        from tensorflow.python.distribute import parameter_server_strategy_v2
    except ImportError:
        return False
    extended = getattr(parameter_server_strategy_v2, "ParameterServerStrategyV2Extended", None)
    create = getattr(extended, "_create_variable_round_robin", None)
    if create is None:
        return False

    @functools.wraps(create)
    def create_and_note(self: object, *arguments: object, **keys: object) -> object:
        made = create(self, *arguments, **keys)
        if not getattr(self._container_strategy(), "cluster_kit_elsewhere", False):
            add(noted, [made])
        return made

    extended._create_variable_round_robin = create_and_note
    return True


def in_sessions(noted: dict[tuple[str, str], int]) -> bool:
    """Record the variables of a graph when a session is prepared for it."""
    try:
        from tensorflow.python.ops import variables
        from tensorflow.python.training import session_manager
    except ImportError:
        return False
    prepare = getattr(session_manager.SessionManager, "prepare_session", None)
    if prepare is None:
        return False

    @functools.wraps(prepare)
    def note_and_prepare(self: object, *arguments: object, **keys: object) -> object:
        with contextlib.suppress(Exception):
            add(noted, variables.global_variables())
        return prepare(self, *arguments, **keys)

    session_manager.SessionManager.prepare_session = note_and_prepare
    return True


def add(noted: dict[tuple[str, str], int], made: Iterable[object]) -> None:
    """Record variables. Variables without a name, device or size are ignored, so that the program
    never fails."""
    for one in made:
        with contextlib.suppress(Exception):
            if (found := sized(one)) is not None and len(noted) < MOST_KEPT:
                noted[found[0]] = found[1]


def say(noted: Sizes, over: Callable[[], bool] = lambda: False) -> None:
    """Append an event when no new variable has been created for a moment."""
    told, before, events = 0, 0, 0
    while events < MOST_EVENTS and not over():
        time.sleep(LOOK_S)
        now = len(noted)
        if now == before and now != told:
            told, events = now, events + 1
            append(ranked(dict(noted)))
        before = now


def append(variables: list[dict[str, object]]) -> None:
    """Append a `placement` event to this task's progress file; on an error the event is lost."""
    told = {"time": round(time.time(), 3), "event": "placement", "variables": variables}
    line = (json.dumps(told) + "\n").encode()
    with contextlib.suppress(OSError):
        file = os.open(os.environ.get(PROGRESS, ""), os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        try:
            os.write(file, line)
        finally:
            os.close(file)
