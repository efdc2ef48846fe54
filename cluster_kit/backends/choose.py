"""Chooses the backend that starts a cluster."""

from __future__ import annotations

from cluster_kit.backends.compose.backend import Compose
from cluster_kit.backends.interface import Backend


def backend() -> Backend:
    """The backend of every command: Docker Compose, the only one so far."""
    return Compose()
