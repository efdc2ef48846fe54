"""Slurm as a backend: one script for `sbatch`."""
