"""What a TensorBoard shows, asked by its own HTTP API."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.e2e.running import read_until, running
from tests.e2e.waiting import wait_for
from tests.kit import Kit

URL = re.compile(r"http://127\.0\.0\.1:\d+/")
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Board:
    """One TensorBoard that answers. Runs are `NAME-TIME/…` of the directories below its logs."""

    url: str

    def ask(self, path: str, body: Any = None) -> Any:
        """The answer to a GET, or to a POST with a body in JSON."""
        data = None if body is None else json.dumps(body).encode()
        of = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}data/{path}", data, of)
        with _DIRECT.open(request, timeout=20) as answer:
            return json.load(answer)

    def runs(self) -> list[str]:
        found: list[str] = self.ask("runs")
        return found

    def tags(self, plugin: str) -> dict[str, set[str]]:
        """The last part of each run's name, and its tags of a plugin: scalars, images."""
        found = self.ask(f"plugin/{plugin}/tags")
        return {run.rpartition("/")[2]: set(tags) for run, tags in found.items() if tags}

    def hyperparameters(self) -> set[str]:
        """The names of those that the tab HParams has as columns."""
        asked = {"experimentName": "", "hparamsLimit": 1000}
        found = self.ask("plugin/hparams/experiment", asked)
        return {one["name"] for one in found["hparamInfos"]}

    def read_of(self, runs: Sequence[str]) -> bool:
        """Whether it has read of all these runs, and the hyperparameters: it does so by and by."""
        return self.tags("scalars").keys() >= set(runs) and bool(self.hyperparameters())

    def graphs(self) -> dict[str, Any]:
        """The same as `tags` for graphs: of a run its graph, of a tag a model's layers."""
        found = self.ask("plugin/graphs/info")
        return {run.rpartition("/")[2]: about for run, about in found.items()}


def answering(url: str, runs: int) -> Board:
    """The TensorBoard at `url` once it has found so many runs."""
    board = Board(url)

    def all_there() -> bool:
        with contextlib.suppress(urllib.error.URLError, OSError):
            return len(board.runs()) >= runs
        return False

    wait_for(f"{runs} runs in TensorBoard", all_there)
    return board


@contextlib.contextmanager
def shown(kit: Kit, *names: str, runs: int) -> Iterator[Board]:
    """`cluster-kit tensorboard` of these clusters' newest runs; it is ended by Ctrl-C."""
    with running(kit, "tensorboard", *names) as process:
        said = read_until(process, "TensorBoard: ")
        found = URL.search(said)
        assert found, said
        yield answering(found[0], runs)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 0 and "TensorBoard ended" in said
