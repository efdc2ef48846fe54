"""The stage on which whole runs play, for all tests of this folder; one variant can reach
containers."""

import pytest

from cluster_kit.api import host_chief
from tests.fakes.handlers import usual_handlers
from tests.fakes.stage import Stage, stage

__all__ = ["host", "stage", "usual_handlers"]


@pytest.fixture
def host(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A stage whose containers can be reached from this process, which may be their chief."""
    # No process listens to the engine's events while such a cluster starts.
    settle = stage.engine.settle
    stage.clock.settle = lambda: settle() if stage.engine._listeners else None
    monkeypatch.setattr(host_chief, "connect", lambda _host, _port: "")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    return stage
