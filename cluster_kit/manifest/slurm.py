"""The table `[slurm]`: what Slurm has to be told besides the job. Pure."""

from __future__ import annotations

from pydantic import Field

from cluster_kit.manifest.field_types import Strict, Text


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
