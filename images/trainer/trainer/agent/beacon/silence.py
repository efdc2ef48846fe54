"""Measures how long each task has been silent, by a clock that stops while this process is stopped.

A process that is itself frozen or starved receives no heartbeats; other tasks are not to blame for
that.
"""

from __future__ import annotations

from trainer.contract import heartbeat


class Silence:
    """Times of others' last messages; all in seconds, `now` is of a monotonic clock."""

    def __init__(self, now: float) -> None:
        self._looked_at = now
        self._awake = 0.0
        self._heard_at: dict[str, float] = {}

    def look(self, now: float) -> None:
        """Advance the clock; to be called about every BEAT_S, after all messages were handled."""
        self._awake += heartbeat.passed(self._looked_at, now)
        self._looked_at = now

    def heard(self, name: str) -> float:
        """Note a message of `name`; returns how long it had been silent, 0 for the first one."""
        silent = self._awake - self._heard_at.get(name, self._awake)
        self._heard_at[name] = self._awake
        return silent

    def forget(self, name: str) -> None:
        """Forget a task that has ended or whose connection is closed: it is not silent."""
        self._heard_at.pop(name, None)

    def silent(self, silent_s: float, *, server: bool = False) -> dict[str, float]:
        """The seconds of silence of each frozen or cut-off task (see `heartbeat.is_silent`)."""
        times = self.longer_than(0.0)
        return {
            name: time
            for name, time in times.items()
            if heartbeat.is_silent(time, silent_s, server=server)
        }

    def longer_than(self, seconds: float) -> dict[str, float]:
        """The seconds of silence of each task that has been silent for longer than this."""
        silent = {name: self._awake - at for name, at in self._heard_at.items()}
        return {name: time for name, time in silent.items() if time > seconds}
