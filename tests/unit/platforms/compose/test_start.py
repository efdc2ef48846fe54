"""The errors of a start by Compose."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cluster_kit.platforms.compose.compose_platform import up
from cluster_kit.platforms.platform import SidecarUnready
from cluster_kit.util.process import Completed
from tests import make


@pytest.mark.parametrize(
    ("words", "ended"),
    [
        ("dependency failed to start: container demo-web exited (3)", 3),
        ("dependency failed to start: container demo-web is unhealthy", None),
    ],
)
def test_a_sidecar_that_programs_wait_for_is_named(
    words: str, ended: int | None, tmp_path: Path
) -> None:
    (tmp_path / "compose.yaml").write_text("services: {}\n")
    host: Any = SimpleNamespace(
        processes=SimpleNamespace(
            run=lambda *_, **__: Completed((), 1, "", f" Container x  Started\n{words}")
        )
    )
    with pytest.raises(SidecarUnready) as caught:
        up(host, make.cluster(), tmp_path / "compose.yaml", tmp_path, "1")
    assert (caught.value.container, caught.value.ended) == ("demo-web", ended)
