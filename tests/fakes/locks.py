"""Locks of one test: no other test, and no cluster of this machine, is in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.util import locks


def kept_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Locks are files below `folder`, and their names are its own."""
    patch.setattr(locks, "own_directory", lambda: folder)
    patch.setattr(locks, "PREFIX", str(folder))
