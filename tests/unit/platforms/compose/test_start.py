"""The errors of a start by Compose."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cluster_kit.errors import EngineError
from cluster_kit.platforms.compose.compose_platform import up
from cluster_kit.util.process import Completed


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            "dependency failed to start: container demo-web exited (3)",
            "the sidecar's container demo-web ended with 3 before it was ready",
            "`cluster-kit logs` shows why",
        ),
        (
            "dependency failed to start: container demo-web is unhealthy",
            "a sidecar is not ready",
            "its command `ready` has not ended with 0",
        ),
    ],
)
def test_a_sidecar_that_programs_wait_for_is_named(
    words: str, message: str, hint: str, tmp_path: Path
) -> None:
    host: Any = SimpleNamespace(
        processes=SimpleNamespace(
            run=lambda *_, **__: Completed((), 1, "", f" Container x  Started\n{words}")
        )
    )
    with pytest.raises(EngineError) as caught:
        up(host, tmp_path / "compose.yaml", tmp_path, "1")
    assert caught.value.message.startswith(message)
    assert caught.value.hint.startswith(hint)
