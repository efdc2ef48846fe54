"""With TensorFlow: an idle server is traced, and its file is read."""

from __future__ import annotations

import json
import time

import pytest
from reading import read_until

from trainer.agent.profiling import traces
from trainer.agent.profiling.profile import ask_all

pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
grpc = pytest.importorskip("grpc", reason="grpcio is in the image, not here")


@pytest.mark.parametrize("kind", ["native", "python"])
def test_a_server_traces_itself_and_missing_tasks_are_named(run_task, free_port, tmp_path, kind):
    address = f"127.0.0.1:{free_port()}"
    cluster = {"chief": ["127.0.0.1:1"], "ps": [address]}
    server = run_task("ps-0", cluster, "serve", CLUSTER_KIT_SERVER=kind, CUDA_VISIBLE_DEVICES="-1")
    read_until(server, "server ready")
    asked_at = time.time()
    answers = ask_all({"ps-0": address, "chief-0": "127.0.0.1:1"}, tmp_path, "now", 0.2)
    assert answers == {"ps-0": "", "chief-0": "no TensorFlow server answers there"}
    trace = traces.read_trace(tmp_path / "now" / "ps-0.xplane.pb", "ps-0", asked_at - 999, 9)
    assert asked_at - 1 < trace.began / 1e9 < time.time(), "its own clock, not ours"
    assert 0.15 < trace.duration / 1e9 < 5
    events = [event for thread in trace.threads for event in thread.events]
    assert all(-1e9 < event.begin < 6e9 for event in events)


def test_the_command_writes_a_trace(run_task, free_port, tmp_path):
    address = f"127.0.0.1:{free_port()}"
    cluster = {"ps": [address]}
    server = run_task("ps-0", cluster, "serve", CUDA_VISIBLE_DEVICES="-1")
    read_until(server, "server ready")
    asked = run_task("ps-0", cluster, "profile", "0.2")
    facts = json.loads(read_until(asked, '"folder"')[-1])
    assert facts["tasks"]["ps-0"]["runs"] == 0 and facts["missing"] == {}
    assert facts["trace_bytes"] > 0
