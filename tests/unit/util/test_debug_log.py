"""Requests to engines and programs: printed on request, kept with a run, masked, bounded."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cluster_kit.platforms.docker.docker_connection import _logged
from cluster_kit.util import debug_log
from cluster_kit.util.masking import masker
from cluster_kit.util.process import Completed
from cluster_kit.util.process import _logged as logged_command

LOG = logging.getLogger("cluster_kit.test")
LINE = re.compile(r"\d\d:\d\d:\d\d\.\d\d\d test: (.*)")


def lines(folder: Path) -> list[str]:
    """Returns the lines of a run's debug log without the times at their beginnings."""
    text = (folder / debug_log.FILE).read_text(encoding="utf-8")
    return [found[1] for line in text.splitlines() if (found := LINE.fullmatch(line))]


def test_a_run_keeps_requests_from_before_and_after_it_had_a_directory(tmp_path: Path) -> None:
    with debug_log.Recording() as recording:
        with debug_log.timed(LOG, "GET /version") as result:
            result(200)
        recording.keep_in(tmp_path, masker(["hunter22"]))
        with pytest.raises(OSError), debug_log.timed(LOG, "login hunter22"):
            raise OSError
    LOG.debug("after the run")
    first, second = lines(tmp_path)
    assert re.fullmatch(r"GET /version -> 200 \(\d+ ms\)", first)
    assert re.fullmatch(r"login \*\*\* -> OSError \(\d+ ms\)", second)


def test_a_secret_is_masked_wherever_a_long_line_is_cut(tmp_path: Path) -> None:
    secret = "hunter2-0123456789  abcdefghi\nand-a-second-line"
    with debug_log.Recording() as recording:
        for at in range(debug_log.LONGEST - 60, debug_log.LONGEST + debug_log.END + 60, 3):
            with debug_log.timed(LOG, f"{'x' * at}{secret}{'y' * 100}") as result:
                result("exit code 0")
        recording.keep_in(tmp_path, masker([secret]))
        LOG.debug("%s%s", "x" * debug_log.LONGEST, secret)
    text = (tmp_path / debug_log.FILE).read_text(encoding="utf-8")
    assert not [part for part in ("hunter2", "bcdef", "second") if part in text]
    assert max(map(len, text.splitlines())) < debug_log.LONGEST + debug_log.END + 40
    assert text.count("y -> exit code 0 (") == len(text.splitlines()) - 1


def test_without_a_listener_nothing_is_measured_or_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with debug_log.timed(LOG, "GET /version") as result:
        result(200)
    assert not LOG.isEnabledFor(logging.DEBUG) and not debug_log.KIT.propagate


def test_other_handlers_get_no_more_lines_because_a_run_keeps_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """pytest has a handler at every logger that does not propagate, and prints it if a test
    fails."""
    seen: list[logging.LogRecord] = []
    other = logging.Handler()
    other.emit = seen.append  # type: ignore[method-assign]
    monkeypatch.setattr(debug_log.KIT, "handlers", [other])
    with debug_log.Recording(), debug_log.Recording():
        LOG.debug("a request")
        LOG.warning("a warning")
    assert [record.getMessage() for record in seen] == ["a warning"]
    assert other.filters == [] and debug_log.KIT.level == logging.NOTSET
    try:
        debug_log.KIT.setLevel(logging.DEBUG)
        with debug_log.Recording():
            LOG.debug("one that was asked for")
        assert len(seen) == 2 and debug_log.KIT.level == logging.DEBUG
        debug_log.KIT.setLevel(logging.ERROR)
        with debug_log.Recording():
            LOG.warning("one that was not")
        assert len(seen) == 2 and debug_log.KIT.level == logging.ERROR
    finally:
        debug_log.KIT.setLevel(logging.NOTSET)


def test_a_log_is_bounded_and_keeps_its_newest_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debug_log, "LARGEST", 2000)
    with debug_log.Recording() as recording:
        recording.keep_in(tmp_path, str)
        for number in range(200):
            LOG.debug("line %d\nof a task", number)
    sizes = [(tmp_path / name).stat().st_size for name in (debug_log.FILE, debug_log.OLDER)]
    assert max(sizes) < 2100 and lines(tmp_path)[-1] == "line 199 of a task"


def test_a_removed_directory_ends_no_run(tmp_path: Path) -> None:
    with debug_log.Recording() as recording:
        recording.keep_in(tmp_path / "gone", str)
        LOG.debug("a line")
    assert not (tmp_path / "gone").exists()


def test_commands_and_requests_are_logged_with_their_results(tmp_path: Path) -> None:
    def send(_request: Any) -> Any:
        return SimpleNamespace(status_code=404)

    def run(command: Any) -> Completed:
        return Completed(tuple(command), 3, "", "")

    request = SimpleNamespace(method="GET", path_url="/containers/json?all=1&filters=%7B%7D")
    with debug_log.Recording() as recording:
        recording.keep_in(tmp_path, str)
        _logged(send)(request)
        logged_command(run)(["tool", "--api-token", "s3cret-value", "a b"])
    text = (tmp_path / debug_log.FILE).read_text(encoding="utf-8")
    assert " docker: GET /containers/json?all=1&filters={} -> 404 (" in text
    assert " process: tool --api-token '***' 'a b' -> exit code 3 (" in text


def test_a_command_is_shown_without_passwords_in_addresses(tmp_path: Path) -> None:
    words = ["fetch", "--url", "https://me:in-clear-1@host/x", "--token=in-clear-2"]
    with debug_log.Recording() as recording:
        recording.keep_in(tmp_path, str)
        logged_command(lambda command: Completed(tuple(command), 0, "", ""))(words)
    text = (tmp_path / debug_log.FILE).read_text()
    assert "fetch --url 'https://me:***@host/x' '--token=***' -> exit code 0" in text
