"""A user's project whose tests use the plugin."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.stage import MANIFEST

PLUGIN = ("-p", "cluster_kit.testing.plugin")
QUIET = ("-p", "no:cacheprovider", "--tb=native")
PASSES = """
def test_it_learns(cluster):
    outcome = cluster.run("compose/demo.toml", worker=1)
    assert outcome.metrics["test_accuracy"] > 0.8
    assert [task.name for task in outcome.tasks if task.role == "worker"] == ["worker-0"]
    assert outcome.cluster.startswith("test-it-learns-")
"""


class Project:
    """A user's project with a manifest, and pytest in it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.root = pytester.path
        self._pytester = pytester
        (self.root / "compose").mkdir()
        (self.root / "compose" / "demo.toml").write_text(MANIFEST)

    def test(self, text: str, *options: str, at: str = "test_it.py") -> pytest.RunResult:
        path = self.root / at
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        base = f"--basetemp={self.root / 'tmp'}"
        return self._pytester.runpytest_inprocess(
            *PLUGIN, *QUIET, base, *options, no_reraise_ctrlc=True
        )

    @property
    def runs(self) -> list[Path]:
        return sorted(self.root.glob("tmp/cluster-kit[0-9]*/runs/*/2*"))

    def ini(self, text: str) -> None:
        (self.root / "pytest.ini").write_text(f"[pytest]\n{text}\n")
