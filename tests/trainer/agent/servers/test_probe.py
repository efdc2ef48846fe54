"""The probe, against test servers that answer GetStatus."""

from __future__ import annotations

import json
import socket
import time
from concurrent import futures

import pytest

from trainer.agent.injected.gpu_promises import Gpu
from trainer.agent.servers import probe, wire
from trainer.agent.servers.probe import ServersMissing, ServersReady

grpc = pytest.importorskip("grpc", reason="grpcio, a part of the image, is not installed here")


@pytest.fixture
def server():
    """Returns a function that starts a gRPC server that identifies itself as job:task; returns its
    address."""
    running = []

    def start(
        job: str, task: int, incarnation: int = 5, port: int = 0, gpus: tuple[str, ...] = ()
    ) -> str:
        def device(kind: str, index: int, description: str = "") -> bytes:
            name = f"/job:{job}/replica:0/task:{task}/device:{kind}:{index}"
            return wire.block(
                1,
                wire.block(1, name)
                + wire.block(2, kind)
                + (b"\x31" + incarnation.to_bytes(8, "little"))
                + wire.block(7, description),
            )

        status = device("CPU", 0) + b"".join(
            device("GPU", index, text) for index, text in enumerate(gpus)
        )
        handler = grpc.unary_unary_rpc_method_handler(lambda *_: status)
        service = grpc.method_handlers_generic_handler(
            "tensorflow.WorkerService", {"GetStatus": handler}
        )
        one = grpc.server(futures.ThreadPoolExecutor(1))
        one.add_generic_rpc_handlers((service,))
        bound = one.add_insecure_port(f"127.0.0.1:{port}")
        one.start()
        running.append(one)
        return f"127.0.0.1:{bound}"

    def stop_all() -> None:
        for one in running:
            one.stop(0).wait()

    start.stop_all = stop_all
    yield start
    stop_all()


def test_a_master_answers_as_the_chief(server):
    ready = probe.wait_for({"chief-0": server("master", 0, 11)}, 5)
    assert ready.incarnations == {"chief-0": 11}


def test_all_servers_answer(server):
    servers = {"ps-0": server("ps", 0, 11), "worker-0": server("worker", 0, 12)}
    assert probe.wait_for(servers, 5) == ServersReady(
        {"ps-0": 11, "worker-0": 12}, {"ps-0": (), "worker-0": ()}
    )


def test_missing_and_misplaced_servers_are_named(server, free_port):
    servers = {
        "ps-0": server("ps", 0),
        "worker-0": server("ps", 1),
        "worker-1": f"127.0.0.1:{free_port()}",
    }
    found = probe.wait_for(servers, 0.8)
    assert isinstance(found, ServersMissing)
    assert found.tasks == ("worker-0", "worker-1")
    assert f"{servers['worker-0']} answers as ps:1, expected worker:0" in str(found)
    assert f"worker-1 at {servers['worker-1']} is silent" in str(found)


def test_a_restart_and_a_loss_are_detected(server, free_port):
    servers = {
        "ps-0": server("ps", 0, 1),
        "ps-1": server("ps", 1, 2),
        "ps-2": f"127.0.0.1:{free_port()}",
    }
    ready = ServersReady({"ps-0": 1, "ps-1": 99, "ps-2": 3})
    lost = probe.lost_since(ready, servers)
    assert lost[0] == "ps-1 was started again"
    assert "ps-2" in lost[1]
    assert len(lost) == 2


def test_a_workers_restart_is_a_cause_only_if_nothing_else_was_lost(server):
    """A coordinator survives a worker's restart, which may have been minutes ago."""
    servers = {"worker-0": server("worker", 0, 1), "ps-0": server("ps", 0, 2)}
    both = ServersReady({"worker-0": 9, "ps-0": 9})
    assert probe.lost_since(both, servers) == ("ps-0 was started again",)
    alone = ServersReady({"worker-0": 9, "ps-0": 2})
    assert probe.lost_since(alone, servers) == ("worker-0 was started again",)


def test_a_failure_after_the_loss_of_a_server_is_retried(
    server, free_port, run_task, events, tmp_path
):
    """The program fails when ps-0 has a new incarnation; its second attempt succeeds."""
    program = tmp_path / "program.py"
    program.write_text(
        "import pathlib, sys, time\n"
        f"at = pathlib.Path({str(tmp_path)!r})\n"
        "again = (at / 'running').exists()\n"
        "(at / 'running').touch()\n"
        "while not (at / 'fail').exists(): time.sleep(0.02)\n"
        "sys.exit(0 if again else 1)\n"
    )
    address = server("ps", 0, incarnation=1)
    cluster = {"chief": ["127.0.0.1:1"], "ps": [address]}
    task = run_task("chief-0", cluster, "run", str(program), CLUSTER_KIT_RETRIES=1)
    until = time.monotonic() + 10
    while time.monotonic() < until and not (
        (tmp_path / "running").exists() and "ready" in {e["event"] for e in events("chief-0")}
    ):
        time.sleep(0.02)
    server.stop_all()
    server("ps", 0, incarnation=2, port=int(address.rpartition(":")[2]))
    (tmp_path / "fail").touch()
    assert task.wait(20) == 0, task.stdout.read()
    retries = [event for event in events("chief-0") if event["event"] == "retry"]
    assert [retry["reason"] for retry in retries] == ["ps-0 was started again"]


def h200(index: int) -> str:
    """Returns a GPU as TensorFlow describes it."""
    bus = f"0000:{index + 1}b:00.0"
    return f"device: {index}, name: NVIDIA H200, pci bus id: {bus}, compute capability: 9.0"


SEEN = [f"NVIDIA H200 (pci 0000:{index + 1}b:00.0)" for index in range(2)]
PROMISED = {"name": "GPU 1 (GPU-5c1d…)", "pci": "00000000:2B:00.0", "uuid": "GPU-5c1d"}
"""The host's description of the GPU that TensorFlow describes as `h200(1)`."""


def test_physical_gpus_are_counted_not_logical_ones(server):
    address = server("worker", 0, gpus=(h200(0), h200(0), h200(1)))
    assert probe.wait_for({"worker-0": address}, 5).gpus == {
        "worker-0": tuple(Gpu("NVIDIA H200", f"0000:{index + 1}b:00.0") for index in range(2))
    }


@pytest.mark.parametrize(
    ("shows", "promised", "message"),
    [
        ((), [PROMISED], "worker-0 was promised GPU 1 (GPU-5c1d…), pci 0000:2b:00.0, sees none"),
        ((), ["GPU-5c1d"], "worker-0 was promised GPU-5c1d, sees none"),
        ((h200(0),), ["0", "1"], f"worker-0 was promised 2 GPUs (0, 1), sees 1 ({SEEN[0]})"),
        (
            (h200(0),),
            [PROMISED],
            f"worker-0 was promised GPU 1 (GPU-5c1d…), pci 0000:2b:00.0, sees {SEEN[0]}",
        ),
        ((h200(0),), [], f"worker-0 was promised no GPU, sees 1 ({SEEN[0]})"),
    ],
)
def test_a_server_without_its_gpu_ends_the_job_at_once(
    server, run_task, events, tmp_path, toy_tensorflow, shows, promised, message
):
    program = tmp_path / "program.py"
    program.write_text("import tensorflow; print('must not come')")
    cluster = {"chief": ["127.0.0.1:1"], "ps": [server("ps", 0)],
               "worker": [server("worker", 0, gpus=shows)]}  # fmt: skip
    task = run_task(
        "chief-0", cluster, "run", str(program), CLUSTER_KIT_RETRIES=2,
        CLUSTER_KIT_PROMISES=json.dumps({"worker-0": promised}),
    )  # fmt: skip
    assert task.wait(10) == 3
    assert "must not come" not in task.stdout.read()
    found = events("chief-0")
    assert [event["event"] for event in found] == ["start", "devices", "end"]
    names = [gpu["name"] if isinstance(gpu, dict) else gpu for gpu in promised]
    assert (found[1]["of"], found[1]["promised"]) == ("worker-0", names)
    assert found[1]["sees"] == SEEN[: len(shows)]
    end = found[-1]
    assert (end["reason"], end["message"], end["tasks"]) == ("gpu-missing", message, ["worker-0"])


@pytest.mark.parametrize(
    ("shows", "check"),
    [((h200(1),), "on"), ((), "off"), ((h200(0),), "off")],
    ids=["kept", "unchecked", "another one, unchecked"],
)
def test_a_promise_that_is_kept_or_not_checked(
    server, run_task, events, tmp_path, toy_tensorflow, shows, check
):
    program = tmp_path / "program.py"
    program.write_text("import tensorflow; print('went on')")
    cluster = {"chief": ["127.0.0.1:1"], "ps": [server("ps", 0)],
               "worker": [server("worker", 0, gpus=shows)]}  # fmt: skip
    task = run_task(
        "chief-0", cluster, "run", str(program), CLUSTER_KIT_GPU_CHECK=check,
        CLUSTER_KIT_PROMISES=json.dumps({"worker-0": [PROMISED]}),
    )  # fmt: skip
    assert task.wait(10) == 0, task.stdout.read()
    assert [event["event"] for event in events("chief-0")] == ["start", "devices", "ready", "end"]


def test_a_server_with_a_new_address_is_asked_there(server, monkeypatch):
    """On a swarm each start of a task gets a new address, and the old one does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        old = f"127.0.0.1:{deaf.getsockname()[1]}"
        addresses = {"ps-0": old}
        with probe.Prober(addresses) as prober:
            assert prober.answered(60) == []
            assert prober.answered(60) == []
            prober._servers["ps-0"] = server("ps", 0)
            monkeypatch.setattr(probe, "ip_addresses", lambda _address: frozenset(("127.0.0.9",)))
            until = time.monotonic() + 10
            while prober.answered(60) != ["ps-0"]:
                assert time.monotonic() < until
                time.sleep(0.05)


def test_an_address_that_cannot_be_resolved_is_none():
    assert probe.ip_addresses("127.0.0.1:2222") == {"127.0.0.1"}
    assert probe.ip_addresses("not-there.invalid:2222") == frozenset()
