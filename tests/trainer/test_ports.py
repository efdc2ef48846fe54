"""A port that a test gets is reserved for it, as long as any test runs."""

from __future__ import annotations

import socket

import pytest


def test_a_port_is_held_before_between_and_after_its_servers(free_port):
    address = ("127.0.0.1", free_port())
    for _ in range(2):
        with pytest.raises(OSError), socket.socket() as other:
            other.bind(address)  # as an outgoing connection, or as a server that takes any port
        with socket.create_server(address) as server, socket.create_connection(address) as one:
            server.accept()[0].close()
            assert one.recv(1) == b""
    assert free_port() != address[1]
