"""The table `[slurm]` of a manifest, and what a cluster keeps of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import Field

from cluster_kit.manifest.field_types import Strict, Text
from cluster_kit.manifest.schema import Manifest
from cluster_kit.resolved import Cluster
from cluster_kit.util import paths

NAME = "slurm"


class SlurmTable(Strict):
    """How the job runs on Slurm; another engine does not read it."""

    partition: Text = Field("", description="The partition; if not given, Slurm's default")
    account: Text = Field("", description="The account that pays for the job")
    time: Text = Field(
        "",
        description='Slurm\'s time limit, e.g. `"2:00:00"`; if not given, all deadlines together '
        "and ten minutes",
    )
    options: list[Text] = Field(
        default_factory=list,
        description='Further options of `sbatch`, e.g. `["--constraint=ssd", "--nodes=3"]`',
    )
    image: Text = Field(
        "",
        description='An image file of Apptainer, e.g. `"/shared/trainer.sif"`, made from the '
        "cluster's image; without one, tasks run in the nodes' own Python",
    )
    python: Text = Field(
        "python3", description="Without an image: the Python, which has TensorFlow; a path or name"
    )
    trainer: Text = Field(
        "",
        description="Without an image: the directory that has the kit's package `trainer`, on "
        "every node; if not given, that of the kit which renders",
    )
    datasets: Text = Field(
        "",
        description="Without an image: the directory that has the data sets of the kit's image, "
        "such as `digits`",
    )
    setup: list[Text] = Field(
        default_factory=list,
        description="Shell lines before each task, e.g. "
        '`["module load cuda", "source /shared/venv/bin/activate"]`',
    )
    output: Text = Field(
        "runs",
        description="The directory for the runs, which all nodes share; a relative one is below "
        "the directory in which you run `sbatch`",
    )


@dataclass(frozen=True)
class SlurmSettings:
    """What Slurm is told besides the job, as `[slurm]` of the manifest says; "" if not given.

    Without an `image` of Apptainer tasks run in `python`, by the package in the directory
    `trainer`. `port` is the first port of the tasks, None for one that depends on the job.
    """

    partition: str
    account: str
    time: str
    options: tuple[str, ...]
    image: str
    python: str
    trainer: str
    datasets: str
    setup: tuple[str, ...]
    output: str
    port: int | None


def table_of(manifest: Manifest) -> SlurmTable:
    """Returns the table `[slurm]` of a manifest."""
    table = manifest.table(NAME)
    assert isinstance(table, SlurmTable)
    return table


def settings_from(manifest: Manifest) -> Mapping[str, Any]:
    """Returns what the manifest's cluster keeps of the table, for `settings_of`."""
    table = table_of(manifest)
    settings = SlurmSettings(
        partition=table.partition,
        account=table.account,
        time=table.time,
        options=tuple(table.options),
        image=table.image,
        python=table.python,
        trainer="" if table.image else table.trainer or str(paths.IMAGE),
        datasets=table.datasets,
        setup=tuple(table.setup),
        output=table.output,
        port=manifest.port if "port" in manifest.model_fields_set else None,
    )
    return asdict(settings)


def settings_of(cluster: Cluster) -> SlurmSettings:
    """Returns the settings of a cluster that was planned for Slurm."""
    lists = {key: tuple(cluster.settings[key]) for key in ("options", "setup")}
    return SlurmSettings(**{**cluster.settings, **lists})
