"""The table `[network]`: how the cluster's network is. Pure."""

from __future__ import annotations

from pydantic import Field

from cluster_kit.manifest.field_types import Strict


class NetworkTable(Strict):
    """Options of the cluster's network, in addition to `subnet`."""

    internal: bool = Field(
        False,
        description="Whether containers reach each other only, and nothing outside; "
        "on Docker Engine 28 or newer this host does not reach them either",
    )
    encrypted: bool = Field(
        False, description="Whether a swarm encrypts what tasks on different nodes send (IPsec)"
    )
    mtu: int | None = Field(
        None,
        ge=576,
        le=65535,
        description="The largest packet in bytes, e.g. `1400` inside of a VPN; if not given, the "
        "engine's own, mostly 1500",
    )
