"""Commands on the page about Slurm that need a cluster with Slurm, or Apptainer."""

ON_SLURM = {
    "cluster-kit image build quickstart",
    "cluster-kit render quickstart --engine slurm --set slurm.image=/shared/trainer.sif",
    "sbatch compose/quickstart/sbatch.sh",
    "squeue --me",
    "tail -F cluster-kit-quickstart-*.log",
    "tail -F runs/quickstart/latest/logs/worker-0.log",
    "docker save -o trainer.tar $(cluster-kit image tag quickstart)",
    "scp trainer.tar you@login:/shared/",
    "apptainer build /shared/trainer.sif docker-archive:///shared/trainer.tar",
    "python3.11 -m venv /shared/venv",
    "/shared/venv/bin/pip install --no-deps --require-hashes "
    "-r images/trainer/recipe/locked-cpu.txt",
    "cluster-kit render quickstart --engine slurm --set slurm.python=/shared/venv/bin/python "
    "--set slurm.datasets=/shared/datasets",
}
