"""The plugin that pytest loads by its entry point, wherever the kit is installed.

If no test uses the fixture, only this module is imported; the kit itself is imported when a test
asks for a cluster.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from cluster_kit.testing.clusters import Clusters

MARKER = "cluster"
OPTION, INI = "--cluster-kit-engine", "cluster_kit_engine"
CHOICES = ("skip", "require")
STASH = pytest.StashKey["Clusters"]()
FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option, and its ini key."""
    help_ = "tests with clusters where no Docker engine answers: skip them, or require one"
    parser.getgroup("cluster-kit").addoption(OPTION, choices=CHOICES, default=None, help=help_)
    parser.addini(INI, f"{help_} ({' or '.join(CHOICES)})", default=CHOICES[0])


def pytest_configure(config: pytest.Config) -> None:
    """The marker; raises UsageError for a wrong value of the ini key."""
    config.addinivalue_line("markers", f"{MARKER}: starts real containers (fixture `cluster`)")
    if config.getini(INI) not in CHOICES:
        raise pytest.UsageError(
            f"{INI} = {config.getini(INI)!r}: must be {' or '.join(map(repr, CHOICES))}"
        )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that use this plugin's fixture, not another fixture of the same name."""
    definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}).get(
        "cluster", ()
    )
    if definitions and _is_ours(definitions[-1]):
        item.add_marker(MARKER)


def _is_ours(definition: Any) -> bool:
    return getattr(definition.func, "__module__", "") == __name__


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Clusters]:
    """Clusters with unique names: `cluster.run("smoke")`, `with cluster.up("smoke") as up:`.

    Clusters that are still up at the end of the test are taken down. Runs are kept in pytest's
    temporary directory; the report of a test that failed names them.
    """
    _need_engine(request.config)
    from cluster_kit.testing.clusters import Clusters, terminable
    from cluster_kit.this_host import this_host

    base = tmp_path_factory.getbasetemp()
    clusters = Clusters(
        host=this_host(),
        test=request.node.name,
        folders=(request.path.parent, request.config.rootpath),
        new_folder=lambda: tmp_path_factory.mktemp("cluster-kit"),
        notes=base,
    )
    request.node.stash[STASH] = clusters
    with terminable():
        try:
            yield clusters
        finally:
            clusters.take_down()
    keeps = request.config.getini("tmp_path_retention_policy") == "all"
    if clusters.root and not keeps and not request.node.stash.get(FAILED, False):
        shutil.rmtree(clusters.root, ignore_errors=True)


def _need_engine(config: pytest.Config) -> None:
    """Skip the test, or fail it, if no engine answers."""
    from cluster_kit.errors import HostError
    from cluster_kit.this_host import this_host

    missing = None
    try:
        this_host().connect().close()
    except HostError as error:
        missing = error
    if missing and (config.getoption(OPTION) or config.getini(INI)) == "require":
        pytest.fail(f"{missing.message}\n{missing.hint}", pytrace=False)
    if missing:
        pytest.skip(missing.message)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the runs of a failed test to its report."""
    report = yield
    clusters = item.stash.get(STASH, None)
    if clusters is not None and report.failed:
        item.stash[FAILED] = True
        if text := clusters.told():
            report.sections.append(("clusters of this test", text))
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove clusters that a killed process of pytest-xdist has left."""
    if hasattr(session.config, "workerinput"):
        return
    factory = getattr(session.config, "_tmp_path_factory", None)
    base = getattr(factory, "_basetemp", None)
    if base is None:
        return
    # Other directories are tests' own, which another session of pytest may be removing.
    if notes := [*base.glob("*.cluster-kit"), *base.glob("popen-*/*.cluster-kit")]:
        from cluster_kit.errors import KitError
        from cluster_kit.testing.clusters import take_down
        from cluster_kit.this_host import this_host

        for note in notes:
            with contextlib.suppress(KitError):  # the engine is gone as well
                take_down(this_host(), note.stem)
            note.unlink(missing_ok=True)
