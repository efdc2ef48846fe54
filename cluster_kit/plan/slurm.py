"""What is planned for the nodes that Slurm gives a job, which are known when it runs. Pure."""

from __future__ import annotations

from cluster_kit.manifest.schema import Manifest
from cluster_kit.parts import OnSlurm
from cluster_kit.util import kit_files


def on_slurm(manifest: Manifest) -> OnSlurm | None:
    """Returns what the table `[slurm]` says; None for another engine."""
    if manifest.engine != "slurm":
        return None
    table = manifest.slurm
    return OnSlurm(
        partition=table.partition,
        account=table.account,
        time=table.time,
        options=tuple(table.options),
        image=table.image,
        python=table.python,
        trainer="" if table.image else table.trainer or str(kit_files.IMAGE),
        datasets=table.datasets,
        setup=tuple(table.setup),
        output=table.output,
        port=manifest.port if "port" in manifest.model_fields_set else None,
    )
