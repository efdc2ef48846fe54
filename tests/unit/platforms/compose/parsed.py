"""The services of a rendered compose file."""

from __future__ import annotations

from typing import Any

from cluster_kit.platforms.compose.compose_file import render
from tests.make import parse_compose


def services(made: Any) -> dict[str, Any]:
    found = parse_compose(render(made))["services"]
    assert isinstance(found, dict)
    return found


def service(made: Any, name: str) -> Any:
    return services(made)[name]
