"""A user's project, and a stage instead of an engine."""

from __future__ import annotations

import functools

import pytest

from tests.fakes.handlers import usual_handlers
from tests.fakes.stage import stage
from tests.unit.testing.project import Project

__all__ = ["stage", "usual_handlers"]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Removes plugins that happen to be installed here, since finding them takes longer than the
    tests. Printing pytest's whole source after an interrupted session would, too."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    briefly = functools.partialmethod(pytest.ExceptionInfo.getrepr, style="value")
    monkeypatch.setattr(pytest.ExceptionInfo, "getrepr", briefly)
    return Project(pytester)
