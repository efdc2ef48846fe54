"""With TensorFlow: the ServerDef compared with its proto, and the native server as a process."""

from __future__ import annotations

import time

import pytest
from reading import read_until

from trainer.agent.servers import probe, wire

tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
pytest.importorskip("grpc", reason="grpcio is in the image, not here")
CLUSTER = {"ps": ["10.0.0.4:2222"], "worker": ["10.0.0.5:2222", "10.0.0.6:2300"]}


def parsed(**config: int):
    from tensorflow.core.protobuf import tensorflow_server_pb2

    encoded = wire.server_def(CLUSTER, "worker", 1, 2300, wire.session_config(**config))
    return tensorflow_server_pb2.ServerDef.FromString(encoded)


def test_tensorflow_reads_the_kits_server_def():
    found = parsed()
    assert (found.job_name, found.task_index, found.protocol, found.port) == (
        "worker", 1, "grpc", 2300,
    )  # fmt: skip
    jobs = {job.name: [job.tasks[i] for i in sorted(job.tasks)] for job in found.cluster.job}
    assert jobs == CLUSTER
    assert found.default_session_config.gpu_options.allow_growth


def test_a_gpu_memory_limit():
    options = parsed(gpu_memory_mb=2048, gpus=2).default_session_config.gpu_options
    assert not options.allow_growth
    limits = [list(one.memory_limit_mb) for one in options.experimental.virtual_devices]
    assert limits == [[2048.0], [2048.0]]


def test_simulated_devices():
    config = parsed(cpu_devices=3).default_session_config
    assert dict(config.device_count) == {"CPU": 3}
    assert config.gpu_options.allow_growth
    assert not parsed().default_session_config.device_count


@pytest.mark.parametrize("kind", ["native", "python"])
def test_a_server_shows_its_simulated_devices(run_task, free_port, kind):
    address = f"127.0.0.1:{free_port()}"
    cluster = {"chief": ["127.0.0.1:1"], "worker": [address]}
    variables = {"CLUSTER_KIT_SERVER": kind, "CLUSTER_KIT_SIMULATE_GPUS": 3}
    server = run_task("worker-0", cluster, "serve", CLUSTER_KIT_GPU_MEMORY_MB=100, **variables)
    read_until(server, "server ready")
    import grpc

    with grpc.insecure_channel(address) as channel:
        devices = wire.devices(channel.unary_unary(probe.METHOD)(b"", timeout=5))
    name = "/job:worker/replica:0/task:0/device:CPU:"
    assert [device.name for device in devices] == [f"{name}{index}" for index in range(3)]
    assert {device.kind for device in devices} == {"CPU"}


@pytest.mark.parametrize("kind", ["native", "python"])
def test_a_server_identifies_itself_and_ends_on_sigterm(run_task, free_port, events, kind):
    address = f"127.0.0.1:{free_port()}"
    cluster = {"chief": ["127.0.0.1:1"], "ps": [address]}
    server = run_task("ps-0", cluster, "serve", CLUSTER_KIT_SERVER=kind, CUDA_VISIBLE_DEVICES="-1")
    read_until(server, "server ready")
    assert isinstance(probe.wait_for({"ps-0": address}, 20), probe.ServersReady)
    misplaced = probe.wait_for({"worker-0": address}, 1.0)
    assert f"{address} answers as ps:0, expected worker:0" in str(misplaced)
    began = time.monotonic()
    server.terminate()
    assert server.wait(60) == 143
    assert time.monotonic() - began < 10
    assert [event["event"] for event in events("ps-0")] == ["ready", "end"]


def test_a_port_in_use_is_a_clear_error(run_task, free_port):
    import socket

    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        server = run_task("ps-0", {"ps": [f"127.0.0.1:{port}"]}, "serve")
        assert server.wait(10) == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in server.stdout.read()


def test_an_address_of_another_machine_is_a_clear_error(run_task):
    server = run_task("ps-0", {"ps": ["192.0.2.1:2222"]}, "serve")
    assert server.wait(10) == 1
    assert "cannot listen on 192.0.2.1:2222" in server.stdout.read()
