"""A Prometheus on this machine, or one that `make prometheus` has unpacked."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.make import ROOT
from tests.ports import free_port

UNPACKED = ROOT / "build" / "prometheus" / "usr" / "bin"
PATIENCE_S = 20.0
"""Prometheus searches for its targets five seconds after its start, and then every five seconds."""
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def found(program: str) -> str | None:
    """Returns the path of `prometheus` or `promtool`."""
    return shutil.which(program) or shutil.which(str(UNPACKED / program))


def why_none() -> str:
    """Returns why there is no Prometheus here; "" if there is one."""
    if found("prometheus") and found("promtool"):
        return ""
    return "no Prometheus here: `make prometheus` unpacks Debian's"


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus; `url` has no slash at its end."""

    url: str

    def ask(self, path: str, **query: str) -> Any:
        """Returns the data of an answer of its API; raises HTTPError for an invalid query."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with DIRECT.open(url, timeout=5) as answer:
            return json.load(answer)["data"]

    def values(self, query: str) -> list[float]:
        return [float(one["value"][1]) for one in self.ask("query", query=query)["result"]]

    def wait(self, query: str) -> list[float]:
        """Returns the values of a query as soon as there are any."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with contextlib.suppress(urllib.error.URLError):
                if values := self.values(query):
                    return values
            time.sleep(0.05)
        raise TimeoutError(f"no value of {query} within {PATIENCE_S:g} s: {self.targets()}")

    def targets(self) -> Any:
        return self.ask("targets")["activeTargets"]


@contextlib.contextmanager
def running(folder: Path, configuration: str) -> Iterator[Prometheus]:
    """Start a Prometheus with this configuration and a new database, in a directory."""
    (folder / "prometheus.yml").write_text(configuration)
    address = f"127.0.0.1:{free_port()}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(found("prometheus")), f"--config.file={folder / 'prometheus.yml'}",
             f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}"],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield Prometheus(f"http://{address}")
    finally:
        process.kill()
        process.wait(timeout=10)


def check(what: str, *words: str, text: str = "") -> str:
    """Returns what `promtool check` complains about; "" if nothing."""
    done = subprocess.run(
        [str(found("promtool")), "check", what, *words],
        input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 and not done.stderr else done.stdout + done.stderr
