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
        help="A cluster's name, or its manifest's path, also by `--name`; without one the only "
        "cluster of this directory that is up, else quickstart.",
        autocompletion=completion.clusters,
    ),
]
OfCluster = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="The cluster's name, or its manifest's path, also as the first word; without it the "
        "only one of this directory that is up, else quickstart.",
        autocompletion=completion.clusters,
    ),
]
OnEngine = Annotated[
    EngineName | None,
    typer.Option(
        "--engine",
        help="What runs it: compose, swarm or kubernetes; without it this host and its swarm are "
        "asked, or where the last run was started.",
    ),
]
Tasks = Annotated[
    list[str] | None,
    typer.Argument(help="Only these: chief-0 …", autocompletion=completion.tasks),
]
TaskName = Annotated[
    str, typer.Argument(help="A task: chief-0, worker-1 …", autocompletion=completion.tasks)
]
AnyCluster = Annotated[
    str,
    typer.Argument(
        help="A cluster; all of them if none is given.", autocompletion=completion.clusters
    ),
]
Keep = Annotated[
    bool, typer.Option("--keep", help="Leave the ended containers there, to be looked at.")
]
ExitCode = Annotated[
    Literal["kit", "program"],
    typer.Option(
        "--exit-code",
        help="Whose exit code is returned at the end: the kit's, which says why, or the program's.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print facts as JSON on stdout.")]
