"""Ports, subnets and addresses."""

from __future__ import annotations

FIXED = 'subnet = "172.28.0.0/24"\n'
MISTAKES = {
    "a billion workers": ("worker = 1000000000", "worker", "1000000000", "too many tasks", "fewer"),
    "a billion ps": ("ps = 1000000000", "ps", "1000000000", "too many tasks", "fewer tasks"),
    "low port": ("port = 80", "port", "80", "1024 to 65534", "`port = 2222`"),
    "last port": ("port = 65535", "port", "65535", "1024 to 65534", "`port = 2222`"),
    "negative port": ("port = -1", "port", "-1", "1024 to 65534", "`port = 2222`"),
    "subnet too small": (
        'worker = 3\nps = 2\nsubnet = "172.28.0.0/29"',
        "subnet", '"172.28.0.0/29"', "too small", 'use a /28 or larger, or "auto"',
    ),
    "subnet not private": (
        'subnet = "172.72.0.0/24"', "subnet", '"172.72.0.0/24"', "not private", "172.28.0.0/24"
    ),
    "subnet over a Docker network": (
        'subnet = "172.30.4.0/24"', "subnet", '"172.30.4.0/24"',
        "overlaps 172.30.0.0/16 of Docker network other", 'choose another, or "auto"',
    ),
    "subnet over a host route": (
        'subnet = "10.8.1.0/24"', "subnet", '"10.8.1.0/24"',
        "overlaps 10.8.0.0/16 of a route of this host (tun0)", "choose another",
    ),
    "subnet too wide": (
        'subnet = "10.128.0.0/12"', "subnet", '"10.128.0.0/12"', "/16 to /29", "e.g. a /24"
    ),
    "subnet with host bits": (
        'subnet = "172.28.0.5/24"', "subnet", '"172.28.0.5/24"', "has host bits set", "CIDR"
    ),
    "no subnet at all": ('subnet = "big"', "subnet", '"big"', "Expected 4 octets", "CIDR"),
    "IPv6 subnet": ('subnet = "fd00::/64"', "subnet", '"fd00::/64"', "Expected 4", "CIDR"),
    "address on the gateway": (
        FIXED + '[task.worker-0]\nip = "172.28.0.1"',
        "task.worker-0.ip", '"172.28.0.1"', "taken by the gateway", "free address of 172.28.0.0/24",
    ),
    "address of the network": (
        FIXED + '[task.ps-0]\nip = "172.28.0.0"',
        "task.ps-0.ip", '"172.28.0.0"', "the network's own", "choose a free address",
    ),
    "broadcast address": (
        FIXED + '[task.ps-0]\nip = "172.28.0.255"',
        "task.ps-0.ip", '"172.28.0.255"', "the broadcast address", "choose a free address",
    ),
    "address of another task": (
        FIXED + '[task.worker-0]\nip = "172.28.0.101"',
        "task.worker-0.ip", '"172.28.0.101"', "taken by worker-1", "choose a free address",
    ),
    "two tasks pinned to one address": (
        FIXED + '[task.worker-0]\nip = "172.28.0.7"\n[task.worker-1]\nip = "172.28.0.7"',
        "task.worker-1.ip", '"172.28.0.7"', "taken by worker-0", "choose a free address",
    ),
    "address outside": (
        FIXED + '[task.worker-0]\nip = "172.29.0.7"',
        "task.worker-0.ip", '"172.29.0.7"', "outside the subnet 172.28.0.0/24", "free address",
    ),
    "address that is none": (
        FIXED + '[task.worker-0]\nip = "172.28.0"',
        "task.worker-0.ip", '"172.28.0"', "not a valid IPv4 address", "172.28.0.5",
    ),
    "address without a fixed subnet": (
        '[task.worker-0]\nip = "172.28.0.7"',
        "task.worker-0.ip", '"172.28.0.7"', "needs a fixed subnet", 'subnet = "172.28.0.0/24"',
    ),
}  # fmt: skip
