"""`render` for Kubernetes and Slurm: what it refuses, without writing anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.command_line import Cli

ENGINES = {"kubernetes.yaml": "kubernetes", "sbatch.sh": "slurm"}


@pytest.mark.parametrize(
    ("file", "words", "message"),
    [
        ("kubernetes.yaml", ("--portable",), "--portable is for Docker Compose"),
        ("kubernetes.yaml", ("--set", "kubernetes.output=disk"), 'must be "pvc", "pvc:NAME" or'),
        ("kubernetes.yaml", ("--set", "kubernetes.jobset=maybe"), "must be a valid boolean"),
        ("kubernetes.yaml", ("--set", "kubernetes.namespce=a"), "did you mean `namespace`?"),
        ("kubernetes.yaml", ("--set", 'kubernetes.pull_policy="never"'), "Never"),
        ("sbatch.sh", ("--portable",), "--portable is for Docker Compose"),
        ("sbatch.sh", ("--set", "slurm.time=soon"), "not a Slurm time"),
        ("sbatch.sh", ("--set", "slurm.partitoin=a"), "did you mean `partition`?"),
        ("sbatch.sh", ("--set", "slurm.setup=module"), "slurm.setup"),
        ("sbatch.sh", ("--set", "slurm.options=[1]"), "slurm.options.0"),
    ],
)
def test_unsupported_keys_are_refused(
    root: Path, cli: Cli, file: str, words: tuple[str, ...], message: str
) -> None:
    (root / "compose" / "demo.toml").write_text(
        'format = 1\nname = "demo"\n[slurm]\nimage = "trainer.sif"\n'
    )
    found = cli("render", "demo", "--engine", ENGINES[file], *words)
    assert found.code == 2 and message in found.err
    assert not (root / "compose" / "demo" / file).exists()
