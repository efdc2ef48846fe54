"""The few protobuf messages that a server task needs, without protobuf.

Importing TensorFlow's generated modules costs more than starting the server. Field numbers are
those of tensorflow_server.proto, cluster.proto, config.proto and device_attributes.proto; a test
compares the result with the real messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Device(NamedTuple):
    """One device of a server; `kind` is CPU or GPU, `description` describes the physical device."""

    name: str
    incarnation: int
    kind: str = ""
    description: str = ""


def varint(value: int) -> bytes:
    """The bytes of a number 0 or above."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """A varint field; zero is proto3's default and stays unwritten."""
    return varint(field << 3 | VARINT) + varint(value) if value else b""


def block(field: int, value: bytes | str) -> bytes:
    """A length-delimited field: bytes, text or an encoded message."""
    payload = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | BYTES) + varint(len(payload)) + payload


def server_def(
    cluster: Mapping[str, Sequence[str]],
    job: str,
    index: int,
    port: int,
    config: bytes = b"",
) -> bytes:
    """A serialized tensorflow.ServerDef for task `index` of `job`, listening on `port`.

    `config` is a serialized tensorflow.ConfigProto (session_config).
    """
    jobs = b"".join(block(1, job_def(name, hosts)) for name, hosts in cluster.items())
    return (
        block(1, jobs)
        + block(2, job)
        + number(3, index)
        + block(4, config or session_config())
        + block(5, "grpc")
        + number(6, port)
    )


def job_def(name: str, hosts: Sequence[str]) -> bytes:
    """tensorflow.JobDef: the name, and the map from index to address."""
    tasks = (block(2, number(1, index) + block(2, host)) for index, host in enumerate(hosts))
    return block(1, name) + b"".join(tasks)


def session_config(gpu_memory_mb: int | None = None, gpus: int = 1, cpu_devices: int = 0) -> bytes:
    """tensorflow.ConfigProto: a limit for each of `gpus` GPUs, or memory that grows as needed.

    With a limit TensorFlow uses as many GPUs as there are limits, and refuses more limits than
    GPUs unless there is no GPU at all. `cpu_devices` logical CPU devices stand in for GPUs.
    """
    devices = block(1, block(1, "CPU") + number(2, cpu_devices)) if cpu_devices else b""
    if gpu_memory_mb is None or not gpus:
        return devices + block(6, number(4, 1))
    virtual_device = block(1, struct.pack("<f", gpu_memory_mb))
    return devices + block(6, block(9, block(1, virtual_device) * gpus))


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, value) of each field; ValueError if `message` is not a protobuf message."""
    at = 0
    while at < len(message):
        tag, at = _read_varint(message, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = _read_varint(message, at)
            yield tag >> 3, value
            continue
        if kind == BYTES:
            size, at = _read_varint(message, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind} at byte {at}")
        if at + size > len(message):
            raise ValueError(f"field {tag >> 3} ends behind the message")
        payload = message[at : at + size]
        yield tag >> 3, payload if kind == BYTES else int.from_bytes(payload, "little")
        at += size


def devices(status: bytes) -> list[Device]:
    """The devices in a tensorflow.GetStatusResponse."""
    return [
        Device(_text(device, 1), _int(device, 6), _text(device, 2), _text(device, 7))
        for device in (
            dict(fields(value))
            for field, value in fields(status)
            if field == 1 and isinstance(value, bytes)
        )
    ]


def _text(message: Mapping[int, int | bytes], field: int) -> str:
    value = message.get(field, b"")
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def _int(message: Mapping[int, int | bytes], field: int) -> int:
    value = message.get(field, 0)
    return value if isinstance(value, int) else 0


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("the message ends inside a number")
