"""A real Prometheus reads what the kit exports, over /metrics and in files, and runs the
dashboard's queries."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster_kit.metrics.prometheus import FAMILIES
from cluster_kit.platforms.engine import ContainerSummary
from cluster_kit.run.run_report import RunMetrics, write_metrics
from cluster_kit.serve.site import Site
from cluster_kit.serve.start import serving, token_in
from cluster_kit.workspace import RunDirectory, Workspace
from tests.fakes.hosts import fake_host
from tests.make import cluster
from tests.prometheus.installed import Prometheus, check, running
from tests.unit.metrics.runs import begun, ends, tells
from tests.unit.metrics.test_dashboard import queries
from tests.unit.serve.test_metrics import Up, container

CLUSTER = cluster(name="demo", worker=2, ps=1, evaluator=1)
pytestmark = pytest.mark.xdist_group("prometheus")
TASKS = [task.name for task in CLUSTER.tasks]
SCRAPES = """
scrape_configs:
  - job_name: cluster-kit
    scrape_interval: 500ms
    scrape_timeout: 500ms
    authorization: {{credentials_file: {token}}}
    static_configs: [targets: ["{address}"]]
"""


def trains(run: RunDirectory, second: int) -> None:
    """Advance the run by one second: each task uses half a CPU, the chief makes ten steps."""
    now = time.time()
    for task in TASKS:
        tells(run, task, {
            "time": now, "event": "usage", "cpu_s": second / 2, "memory": 2**20,
            "rx_bytes": 100 * second, "tx_bytes": 200 * second,
            "gpus": [{"busy": 0.5, "memory": 2**30}],
        }, suffix=".usage")  # fmt: skip
    step = {"step": 10 * second, "steps_per_s": 10.0, "loss": 1 / second, "accuracy": 0.9}
    tells(run, "chief-0", {"time": now, "event": "step", **step})


def started(run: RunDirectory) -> list[ContainerSummary]:
    now = time.time()
    with (run.path / "events.jsonl").open("a") as file:
        for task in TASKS:
            event = {"time": now, "action": "start", "task": task, "exit_code": None}
            file.write(json.dumps(event) + "\n")
    return [container(run, task, "running") for task in TASKS]


@dataclass
class Scraped:
    prometheus: Prometheus
    run: RunDirectory
    engine: Up


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    """A run that continues, served by the kit, and scraped by a Prometheus."""
    root = tmp_path_factory.mktemp("prometheus")
    run = begun(root, CLUSTER, since=time.time())
    engine = Up(*started(run))
    trains(run, 1)
    site = Site(Workspace(root), fake_host(lambda: engine))
    token = token_in(root / "token")
    with serving(site, token=token) as url:
        address = url.partition("//")[2].partition("/")[0]
        configuration = SCRAPES.format(token=root / "token", address=address)
        with running(root, configuration) as prometheus:
            yield Scraped(prometheus, run, engine)


def test_a_prometheus_scrapes_a_run_from_its_middle_to_its_end(scraped: Scraped) -> None:
    asked = scraped.prometheus
    assert asked.wait('clusterkit_run_up{cluster="demo"} == 1') == [1]
    assert asked.values("up") == [1] and asked.values("clusterkit_engine_up") == [1]
    assert asked.values('clusterkit_task_state{state="training"} == 1') == [1]
    assert asked.values("clusterkit_task_memory_bytes") == [2**20] * 5
    assert asked.values("sum(clusterkit_task_gpu_memory_bytes)") == [5 * 2**30]
    assert asked.values('clusterkit_task_loss{role="chief", index="0"}') == [1]
    (series,) = asked.ask("query", query="clusterkit_task_step")["result"]
    assert series["metric"]["job"] == "cluster-kit" and "exported_job" not in series["metric"]
    for second in (2, 3):
        trains(scraped.run, second)
        assert asked.wait(f"clusterkit_task_steps_total == {10 * second}")
    assert asked.values("sum(increase(clusterkit_task_cpu_seconds_total[1m]))")[0] > 0
    kinds = asked.ask("metadata")
    told = {value.name for value in RunMetrics(scraped.run).values()}
    assert {name: kinds[name][0]["type"] for name in told} == {
        name: FAMILIES[name].kind for name in told
    }
    # Its end: the engine has no container of it any more, and the verdict is scraped.
    ends(scraped.run, tasks=[])
    scraped.engine.found.clear()
    assert asked.wait('clusterkit_run_verdict_info{verdict="success", reason="finished"}') == [1]
    assert asked.values("sum(clusterkit_task_up)") == [0]
    assert asked.values("max(clusterkit_task_steps_total)") == [30]
    assert [one["lastError"] for one in asked.targets()] == [""]


def test_every_query_of_the_dashboard_is_valid(scraped: Scraped, tmp_path: Path) -> None:
    asked = [query.replace("$__rate_interval", "1m") for query in queries()]
    asked = [re.sub(r"\$(cluster|run|task)", ".*", query) for query in asked]
    asked = [query for query in asked if not query.startswith("label_values")]
    rules = [{"record": f"panel:{n}", "expr": query} for n, query in enumerate(asked)]
    file = tmp_path / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    assert check("rules", str(file)) == ""
    scraped.prometheus.wait('clusterkit_task_step{cluster="demo"}')
    for query in asked:
        scraped.prometheus.values(query)


def test_the_file_of_a_run_passes_promtool(tmp_path: Path) -> None:
    run = begun(tmp_path, CLUSTER, since=time.time())
    started(run)
    trains(run, 1)
    ends(run)
    tells(run, "chief-0", {"time": time.time(), "event": "metrics", 'odd "name"\n\\': 1})
    written = write_metrics(run).read_text()
    assert written.count("clusterkit_task_info{") == 5
    assert check("metrics", text=written) == ""
    assert check("metrics", text="cpu_ms_total 1\n") != ""
