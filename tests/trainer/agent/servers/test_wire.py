"""The hand-written protobuf code; test_with_tf_wire compares it with TensorFlow's."""

from __future__ import annotations

import pytest

from trainer.agent.servers import wire


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 65535, 2**40])
def test_numbers_can_be_read_back(number: int):
    assert dict(wire.fields(wire.number(3, number))).get(3, 0) == number


def test_a_server_def_can_be_read_back():
    cluster = {"ps": ["10.0.0.4:2222"], "worker": ["10.0.0.5:2222", "10.0.0.6:2222"]}
    found = dict(wire.fields(wire.server_def(cluster, "worker", 1, 2222)))
    assert (found[2], found[3], found[5], found[6]) == (b"worker", 1, b"grpc", 2222)
    jobs = [dict(wire.fields(job)) for _, job in wire.fields(found[1])]
    assert [job[1] for job in jobs] == [b"ps", b"worker"]


def test_devices_of_a_status():
    name = "/job:ps/replica:0/task:0/device:GPU:0"
    device = wire.block(1, name) + wire.block(2, "GPU") + b"\x31" + b"\x07" * 8
    status = wire.block(1, device + wire.block(7, "device: 0")) + wire.block(1, wire.block(1, "x"))
    assert wire.devices(status) == [
        wire.Device(name, 0x0707070707070707, "GPU", "device: 0"),
        wire.Device("x", 0),
    ]


@pytest.mark.parametrize("broken", [b"\x0a\xff", b"\x80", b"HTTP/1.1 400"])
def test_invalid_protobuf_is_refused(broken: bytes):
    with pytest.raises(ValueError, match=r"message|wire type|number"):
        list(wire.fields(broken))
