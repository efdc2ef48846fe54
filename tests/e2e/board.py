"""What a TensorBoard shows, read through its HTTP API."""

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
    """A running TensorBoard. Runs are `NAME-TIME/…` of the directories below its logs."""

    url: str

    def ask(self, path: str, body: Any = None) -> Any:
        """Returns the answer to a GET, or to a POST with a body in JSON."""
        data = None if body is None else json.dumps(body).encode()
        of = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}data/{path}", data, of)
        with _DIRECT.open(request, timeout=20) as answer:
            return json.load(answer)

    def runs(self) -> list[str]:
        found: list[str] = self.ask("runs")
        return found

    def tags(self, plugin: str) -> dict[str, set[str]]:
        """Returns the last part of each run's name, and its tags of a plugin: scalars, images."""
        found = self.ask(f"plugin/{plugin}/tags")
        return {run.rpartition("/")[2]: set(tags) for run, tags in found.items() if tags}

    def hyperparameters(self) -> set[str]:
        """Returns the names of the columns in the tab HParams."""
        asked = {"experimentName": "", "hparamsLimit": 1000}
        found = self.ask("plugin/hparams/experiment", asked)
        return {one["name"] for one in found["hparamInfos"]}

    def read_of(self, runs: Sequence[str]) -> bool:
        """Returns whether it has read all these runs and their hyperparameters, which takes it some
        time."""
        return self.tags("scalars").keys() >= set(runs) and bool(self.hyperparameters())

    def graphs(self) -> dict[str, Any]:
        """Returns the same as `tags` for graphs: a run's graph, or the model's layers of a tag."""
        found = self.ask("plugin/graphs/info")
        return {run.rpartition("/")[2]: about for run, about in found.items()}


def answering(url: str, runs: int) -> Board:
    """Returns the TensorBoard at `url` when it has found this number of runs."""
    board = Board(url)

    def all_there() -> bool:
        with contextlib.suppress(urllib.error.URLError, OSError):
            return len(board.runs()) >= runs
        return False

    wait_for(f"{runs} runs in TensorBoard", all_there)
    return board


@contextlib.contextmanager
def shown(kit: Kit, *names: str, runs: int) -> Iterator[Board]:
    """Run `cluster-kit tensorboard` for these clusters' newest runs; it is ended by Ctrl-C."""
    with running(kit, "tensorboard", *names) as process:
        output = read_until(process, "TensorBoard: ")
        found = URL.search(output)
        assert found, output
        yield answering(found[0], runs)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 0 and "TensorBoard ended" in output, (process.returncode, output)
