"""When the chief saves: every few seconds, on request, and before it is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import tensorflow as tf

from trainer.programs.training.checkpoints.files import also_as, what_is_left
from trainer.programs.training.errors import Diverged
from trainer.programs.training.graph_mode.saving.saver import Checkpoints, Saved

ANSWER_S = 0.3
"""So long a request waits for the end of an update; then it is saved as it is."""
FOREVER_S = 3600.0


class CheckpointManager:
    """The thread that makes updates calls `between_updates`; any other thread may ask."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        save_secs: float,
        milestone_steps: int = 0,
        on_milestone: Callable[[], None] | None = None,
    ) -> None:
        self.last: Saved | None = None
        self._on_milestone = on_milestone
        self._milestone_steps = milestone_steps
        self._milestone = 0
        self._checkpoints = checkpoints
        self._save_secs = save_secs
        self._due = float("inf")
        self._session: tf.compat.v1.Session | None = None
        self._lock = threading.Lock()
        self._by_hand = threading.Event()
        self._stopping = threading.Event()
        self._saved = threading.Event()

    def begin(self, session: tf.compat.v1.Session, restored: Saved | None) -> None:
        """From now on `session` holds what is worth saving."""
        self.last = restored
        self._milestone = self._milestone_of(restored.step if restored else 0)
        self._session = session
        self._postpone()

    def between_updates(self, step: int) -> None:
        """Save if it is time to; when the process is being stopped, do not return."""
        if self._stopping.is_set():
            self._save_and_tell()
            time.sleep(FOREVER_S)
        elif self._by_hand.is_set():
            self._by_hand.clear()
            self._say_saved(self.save(by_hand=True))
        elif self._milestone_of(step) > self._milestone:
            self._name_milestone(self.save())
        elif time.monotonic() >= self._due:
            self.save()

    def save(self, by_hand: bool = False) -> Saved:
        """Save now; Diverged if there is a variable that is not finite."""
        with self._lock:
            saved = self._checkpoints.save(self._session, by_hand)
        self._postpone()
        if saved is None:
            raise Diverged(f"a variable is not finite any more; {self.what_is_left()}")
        self.last = saved
        return saved

    def save_last(self) -> None:
        """Save when no replica updates any more, and name the milestone if it is one."""
        saved = self.save()
        if self._milestone_of(saved.step) > self._milestone:
            self._name_milestone(saved)

    def _name_milestone(self, saved: Saved) -> None:
        self._milestone = self._milestone_of(saved.step)
        also_as(saved.path, f"ckpt-{self._milestone}")
        if self._on_milestone:
            self._on_milestone()

    def ask(self) -> None:
        """By hand, from another thread: between two updates, or at once if none comes soon."""
        if self._session is None:
            return
        self._by_hand.set()
        time.sleep(ANSWER_S)
        if self._by_hand.is_set():
            self._by_hand.clear()
            self._say_saved(self.save(by_hand=True))

    def save_before_the_end(self) -> Saved | None:
        """From another thread, on SIGTERM: the same, and no update comes after it. None if
        there was nothing to save."""
        if self._session is None:
            return None
        self._stopping.set()
        if not self._saved.wait(ANSWER_S):
            self._save_and_tell()
        return self.last

    def what_is_left(self) -> str:
        return what_is_left(self.last and self.last.name)

    def _save_and_tell(self) -> None:
        with self._lock:
            if not self._saved.is_set():
                self.last = self._checkpoints.save(self._session) or self.last
                self._saved.set()

    def _milestone_of(self, step: int) -> int:
        return step // self._milestone_steps if self._milestone_steps else 0

    def _postpone(self) -> None:
        self._due = time.monotonic() + self._save_secs if self._save_secs else float("inf")

    def _say_saved(self, saved: Saved) -> None:
        print(f"saved by hand: {saved.name}", flush=True)
