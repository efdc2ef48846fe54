"""The stage on which whole runs play, for every test of this room; and one with a way to it."""

import pytest

from cluster_kit.api import host_chief
from tests.fakes.handlers import usual_handlers
from tests.fakes.stage import Stage, stage

__all__ = ["host", "stage", "usual_handlers"]


@pytest.fixture
def host(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A stage whose containers can be reached from this process, which may be their chief."""
    # Nobody listens to the engine's events while such a cluster comes up.
    settle = stage.engine.settle
    stage.clock.settle = lambda: settle() if stage.engine._listeners else None
    monkeypatch.setattr(host_chief, "connect", lambda _host, _port: "")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    return stage
