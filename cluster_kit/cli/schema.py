"""The verb that prints the manifest's JSON Schema."""

from __future__ import annotations

from cluster_kit.cli.app import app, print_json
from cluster_kit.platforms.planning import json_schema


@app.command()
def schema() -> None:
    """Print the manifest's JSON Schema, for editors."""
    print_json(json_schema())
