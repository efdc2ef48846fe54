"""Arguments and options that several verbs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cluster_kit.cli import completion
from cluster_kit.platforms.registry import PLATFORMS

if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal[tuple(PLATFORMS)]
ClusterName = Annotated[
    str | None,
    typer.Argument(
        help="A cluster's name or its manifest's path, also as `--name`. Default: the only cluster "
        "of this directory that is up, else quickstart.",
        autocompletion=completion.clusters,
    ),
]
OfCluster = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="The cluster's name or its manifest's path, also as the first word. Default: the only "
        "cluster of this directory that is up, else quickstart.",
        autocompletion=completion.clusters,
    ),
]
OnEngine = Annotated[
    EngineName | None,
    typer.Option(
        "--engine",
        help="Where to look: compose, swarm or kubernetes. Default: this host and its swarm, or "
        "where the last run was started.",
    ),
]
Tasks = Annotated[
    list[str] | None,
    typer.Argument(help="Only these tasks: chief-0 …", autocompletion=completion.tasks),
]
TaskName = Annotated[
    str, typer.Argument(help="A task: chief-0, worker-1 …", autocompletion=completion.tasks)
]
AnyCluster = Annotated[
    str,
    typer.Argument(
        help="A cluster's name. Default: all clusters.", autocompletion=completion.clusters
    ),
]
Keep = Annotated[
    bool, typer.Option("--keep", help="Keep the containers after the end, to look into them.")
]
ExitCode = Annotated[
    Literal["kit", "program"],
    typer.Option(
        "--exit-code",
        help="The exit code to return: the kit's, which tells why the run ended, or the program's.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
