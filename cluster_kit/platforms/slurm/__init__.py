"""Slurm: a script for `sbatch`."""
