"""Somebody's project, and a stage instead of an engine."""

from __future__ import annotations

import functools

import pytest

from tests.fakes.handlers import usual_handlers
from tests.fakes.stage import stage
from tests.unit.testing.project import Project

__all__ = ["stage", "usual_handlers"]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Without the plugins that happen to be installed here: to find them takes longer than all. So
    does to show the source of all of pytest where a session is interrupted."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    briefly = functools.partialmethod(pytest.ExceptionInfo.getrepr, style="value")
    monkeypatch.setattr(pytest.ExceptionInfo, "getrepr", briefly)
    return Project(pytester)
