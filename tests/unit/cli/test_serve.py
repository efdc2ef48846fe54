"""The verb serve, and `up --serve`: what they print, and what they refuse."""

from __future__ import annotations

import re
import socket
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.cli import serve as cli_serve
from cluster_kit.cli import up as cli_run
from cluster_kit.errors import HostError
from tests.unit.cli.test_report import saved
from tests.unit.command_line import Cli

LIVE = re.compile(r"live page: (http://127\.0\.0\.1:(\d+))(/\S*)")


@pytest.fixture
def asks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    """Instead of waiting for Ctrl-C, the command requests its own page."""
    found: list[tuple[str, int, str]] = []
    printed: list[str] = []
    say = cli_serve.say
    monkeypatch.setattr(cli_serve, "say", lambda text: (printed.append(text), say(text)))

    def wait() -> None:
        _, port, path = LIVE.search(printed[-1]).groups()  # type: ignore[union-attr]
        found.append((path, *ask(int(port), path)))

    monkeypatch.setattr(cli_serve, "_wait", wait)
    return found


def ask(port: int, path: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path)
    response = connection.getresponse()
    page = response.read().decode()
    connection.close()
    return response.status, page


def test_without_a_name_everything_is_served_until_ctrl_c(
    cli: Cli, root: Path, asks: list[tuple[str, int, str]]
) -> None:
    saved(root)
    result = cli("serve")
    assert result.code == 0 and result.err.endswith("the live page has ended\n")
    ((path, status, page),) = asks
    assert path.startswith("/?token=") and status == 200 and '"cluster":"demo"' in page


def test_a_cluster_can_be_given_by_name_or_manifest(
    cli: Cli, root: Path, asks: list[tuple[str, int, str]]
) -> None:
    saved(root)
    cli("serve", "demo"), cli("serve", "compose/demo.toml", "--port", "0")
    assert [path.split("?")[0] for path, _, _ in asks] == ["/cluster/demo"] * 2
    assert all(status == 200 for _, status, _ in asks)


def test_an_unknown_name_is_refused_with_the_nearest(cli: Cli, root: Path) -> None:
    saved(root)
    result = cli("serve", "demoo")
    assert (
        result.code == 2
        and "no cluster `demoo`" in result.err
        and "did you mean `demo`" in result.err
    )


def test_a_port_in_use_is_reported(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = cli("serve", "--port", str(port))
    assert result.code == 3 and f"port {port} of 127.0.0.1 is taken" in result.err
    assert "--port N" in result.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--port", "65536"), "error: cluster-kit serve: "),
        (("--port", "x"), "error: cluster-kit serve: "),
        (("--host", "192.0.2.1"), "192.0.2.1 is not an address of this machine"),
    ],
)
def test_an_invalid_address_is_refused(words: tuple[str, ...], says: str, cli: Cli) -> None:
    result = cli("serve", *words)
    assert result.code in (2, 3) and says in result.err.replace("\n", " ")


def test_up_serves_the_cluster_while_it_runs(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def launch(*_arguments: Any, **_options: Any) -> Any:
        _, port, path = LIVE.search(told[0]).groups()  # type: ignore[union-attr]
        seen.append(ask(int(port), path)[0])
        raise HostError("this far")

    told: list[str] = []
    monkeypatch.setattr(cli_run, "say", told.append)
    monkeypatch.setattr(cli_run, "launch", launch)
    assert cli("up", "demo", "--serve").code == 3 and seen == [200]
    assert "/cluster/demo?token=" in told[0]
    told.clear()
    assert cli("up", "demo", "--name", "other", "--serve").code == 3
    assert "/cluster/other?token=" in told[0]


def test_serve_is_refused_with_detach(cli: Cli) -> None:
    result = cli("up", "demo", "--serve", "--detach")
    assert result.code == 2 and "--serve with --detach" in result.err
    assert "`cluster-kit serve NAME`" in result.err


def test_other_commands_do_not_import_the_server(root: Path) -> None:
    import ast

    from tests.make import ROOT

    for file in (ROOT / "cluster_kit" / "cli").glob("*.py"):
        for node in ast.parse(file.read_text()).body:
            named = getattr(node, "module", "") or ""
            assert not named.startswith(("cluster_kit.serve", "http")), file
