"""A requirement that pip's index does not have is refused before an image is built for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.errors import ManifestError
from cluster_kit.image import index_check
from cluster_kit.util.process import TIMED_OUT, Completed
from tests.fakes.stage import Stage, stage

__all__ = ["stage"]

OPTIONS = ["--extra-index-url https://wheels.example/simple", "--find-links https://h.example"]


def test_names_of_the_lines_that_the_index_must_have() -> None:
    text = (
        "pandsa\nTqdm[notebook]>=4, <5\nsome.pkg == 1.*\n--pre\n"
        "mine @ https://h.example/mine.whl\nold; python_version < '3'\n"
    )
    assert index_check.names_in(text) == {
        "pandsa": 0,
        "Tqdm": 1,
        "some.pkg": 2,
    }
    for option in (*OPTIONS, "--index-url=https://h.example", "--no-index"):
        assert index_check.names_in(f"{option}\n{text}") == {}


def test_the_index_and_the_proxy_are_those_of_pips_configuration() -> None:
    assert index_check.settings("[global]\n") == {
        index_check.URL: "",
        index_check.PROXY: "",
    }
    own = "[global]\nindex-url = https://u:p@h.example/simple\nproxy = http://p.example:3128\n"
    assert index_check.settings(own) == {
        index_check.URL: "https://u:p@h.example/simple",
        index_check.PROXY: "http://p.example:3128",
    }
    for option in OPTIONS:
        assert index_check.settings(f"[global]\n{option[2:].replace(' ', ' = ')}\n") is None


def test_a_page_has_the_normalized_name_and_the_user_is_a_header() -> None:
    address, headers = index_check.page_of("https://u:p%40@h.example/simple/", "Some_Pkg.x")
    assert address == "https://h.example/simple/some-pkg-x/"
    assert headers["Authorization"] == "Basic dTpwQA=="
    assert "Authorization" not in index_check.page_of("https://h.example", "a")[1]


@pytest.mark.parametrize(
    ("pip", "status", "unknown"),
    [
        (200, 404, ["pandsa"]),
        (200, 0, []),
        (200, 403, []),
        (200, 500, []),
        (404, 404, []),
        (0, 404, []),
    ],
)
def test_only_a_404_of_an_index_that_answers_counts(
    pip: int, status: int, unknown: list[str]
) -> None:
    statuses = {"pip": pip, "pandsa": status, "tqdm": 200}
    assert index_check.missing(["pandsa", "tqdm"], statuses.__getitem__) == unknown


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("pandsa", "did you mean pandas?"),
        ("yaml", "did you mean PyYAML?"),
        ("pilow", "did you mean pillow?"),
        ("my-own-thingz", "did you mean my-own-thing?"),
        ("qqqqqqqqqq", "fix the name, or remove the line"),
    ],
)
def test_a_package_is_proposed(name: str, advice: str) -> None:
    assert index_check.advice(name, ["my-own-thing"]) == advice


@pytest.fixture
def index() -> Iterator[str]:
    """The address of an index that has the packages `pip` and `tqdm` only."""

    class Index(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path in ("/simple/pip/", "/simple/tqdm/") else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Index)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/simple"
    server.shutdown()
    server.server_close()
    thread.join(300)


def test_what_an_index_does_not_have_is_printed(
    index: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(address: str) -> str:
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setenv(index_check.URL, address)
        index_check.main(["pandsa", "tqdm"])
        return capsys.readouterr().out

    assert unknown(index) == "pandsa\n"
    assert unknown(f"{index}/elsewhere") == "", "an index without pip says nothing"
    assert unknown("http://127.0.0.1:1/simple") == "", "nobody answers"


def test_a_build_with_an_unknown_package_is_refused_before_it_begins(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "req.txt").write_text("# mine\ntqdm\n\npandsa >= 2  # tables\n")
    stage.docker.lacks_image, stage.docker.index_lacks = True, {"pandsa"}
    with pytest.raises(ManifestError) as caught:
        stage.up(requirements=str(tmp_path / "req.txt"))
    (problem,) = caught.value.problems
    assert problem.key_path == "requirements"
    assert problem.text() == (
        "req.txt:4 = `pandsa >= 2`: pip's package index has no package of this name\n"
        "    → did you mean pandas?"
    )
    assert caught.value.exit_code == 2 and not stage.docker.builds
    stage.docker.index_lacks = set()
    assert stage.up(requirements=str(tmp_path / "req.txt")).success
    assert stage.docker.builds


def test_an_index_that_does_not_answer_in_time_is_not_waited_for(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stage.docker.run

    def late(command: Sequence[str], **options: Any) -> Completed:
        if any("index_check" in word for word in command):
            return Completed(tuple(command), TIMED_OUT, "", "python did not end within 8 s")
        return run(command, **options)

    (tmp_path / "req.txt").write_text("pandsa\n")
    stage.docker.lacks_image = True
    monkeypatch.setattr(stage.docker, "run", late)
    assert stage.up(requirements=str(tmp_path / "req.txt")).success
