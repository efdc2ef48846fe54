"""The table `[slurm]` of a manifest, and rules for manifests on Slurm. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import Field

from cluster_kit.errors import HintText, Problem, Setting
from cluster_kit.manifest.field_types import Strict, Text
from cluster_kit.manifest.schema import DataTable, Manifest
from cluster_kit.plan.tasks import names_in, templates_of
from cluster_kit.platforms import refusals
from cluster_kit.platforms.refusals import HERE, REQUIRE, refused
from cluster_kit.programs.catalog import DATA_SETS, PROGRAMS
from cluster_kit.resolved import Cluster
from cluster_kit.roles import DATA_WORKER
from cluster_kit.util import paths
from cluster_kit.util.toml_text import to_toml

NAME = "slurm"


class SlurmTable(Strict):
    """How the job runs on Slurm; another engine does not read it."""

    partition: Text = Field("", description="The partition; if not given, Slurm's default")
    account: Text = Field("", description="The account that pays for the job")
    time: Text = Field(
        "",
        description='Slurm\'s time limit, e.g. `"2:00:00"`; if not given, the sum of all '
        "deadlines plus ten minutes",
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
        "python3", description="Without an image: name or path of a Python with TensorFlow"
    )
    trainer: Text = Field(
        "",
        description="Without an image: the directory with the kit's package `trainer` on every "
        "node; if not given, that of the kit that renders the job",
    )
    datasets: Text = Field(
        "",
        description="Without an image: the directory with the data sets of the kit's image, such "
        "as `digits`",
    )
    setup: list[Text] = Field(
        default_factory=list,
        description="Shell lines before each task, e.g. "
        '`["module load cuda", "source /shared/venv/bin/activate"]`',
    )
    output: Text = Field(
        "runs",
        description="The directory for runs, shared by all nodes; relative to the directory in "
        "which you run `sbatch`",
    )


@dataclass(frozen=True)
class SlurmSettings:
    """Settings of a Slurm job, from the manifest's table `[slurm]`; "" if not given.

    Without an `image` of Apptainer, tasks run in `python`, with the package in the directory
    `trainer`. `port` is the first port of the tasks; None: one that depends on the job.
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


def settings_from(manifest: Manifest) -> Mapping[str, Any]:
    """Returns the table's values that the cluster keeps; `settings_of` reads them."""
    table = manifest.table(NAME, SlurmTable)
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
    """Returns the settings of a cluster planned for Slurm."""
    lists = {key: tuple(cluster.settings[key]) for key in ("options", "setup")}
    return SlurmSettings(**{**cluster.settings, **lists})


IMAGE = ("write ", Setting("slurm.image", "trainer.sif"), ", or remove it")
ACCOUNT_NAME = re.compile(r"[\w.,@-]+", re.ASCII)
TIME = re.compile(r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}")
OPTION = re.compile(r"--([a-z][a-z-]*)(=[\x20-\x7e]+)?")
OWN = (
    "account", "array", "cpus-per-task", "error", "export", "gpus-per-task", "het-group",
    "job-name", "mem", "mem-per-cpu", "ntasks", "output", "partition", "requeue", "signal", "time",
    "wait", "wrap",
)  # fmt: skip
"""Options of sbatch that the kit sets, or that do not work with its script."""
_IN_LIMITS: dict[str, tuple[str, HintText]] = {
    "gpus": (
        "Slurm decides which GPUs a task gets",
        ("remove it, or set a number for each worker: ", REQUIRE),
    ),
    "ports": (
        "tasks use the nodes' network: nothing is published on this host",
        "remove it, and use `ssh -L PORT:NODE:PORT`",
    ),
    "bandwidth": ("limiting it needs rights that a Slurm job does not have", HERE),
    "ulimits": (
        "Slurm gives tasks the limits of the shell that submits them: `ulimit` sets them",
        "remove it, and run `ulimit` before `sbatch`",
    ),
    "shm_size": ("tasks use the /dev/shm of their nodes", "remove it"),
    "env_file": (
        "the file has Compose's format, and nodes do not have Compose",
        "write its names in `secrets`, or `set -a; . FILE; set +a` in `setup` of [slurm]",
    ),
    "nodes": (
        "Slurm's nodes have features instead of labels",
        'set features under [slurm]: `options = ["--constraint=FEATURE"]`',
    ),
}


def check_slurm(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems of keys that Slurm does not support."""
    yield from _addresses(manifest)
    if count := manifest.count(DATA_WORKER.name):
        rule = "the kit does not start tf.data service in a Slurm job"
        yield refused(DATA_WORKER.name, str(count), rule)
    yield from _of_this_host(manifest)
    if not manifest.table(NAME, SlurmTable).image:
        yield from _without_image(manifest)
    for table, limits in manifest.limits_by_table():
        yield from refusals.in_limits(table, limits, _IN_LIMITS)
        yield from refusals.in_clear(table, limits, "sbatch.sh", ", and export the variable")
    yield from _table(manifest.table(NAME, SlurmTable))


def _addresses(manifest: Manifest) -> Iterator[Problem]:
    hint = "write {{ ps_hosts }}, {{ worker_hosts }} or {{ master }}, or read TF_CONFIG"
    rule = "a task has its node's address, which is unknown until the job starts"
    yield from refusals.addresses(manifest, rule, hint)
    for key_path, text in templates_of(manifest):
        if "port" in names_in([text]):
            rule = "a task's port is unknown until the job starts"
            yield refused(key_path, to_toml(text), rule, hint)
    rule_of_network = "tasks use the nodes' network"
    yield from refusals.own_network(manifest, rule_of_network)
    for key in ("encrypted", "internal"):
        if getattr(manifest.network, key):
            yield refused(f"network.{key}", "true", rule_of_network)


def _of_this_host(manifest: Manifest) -> Iterator[Problem]:
    rule = "Slurm and the nodes set these limits, and /tmp is a directory of the node"
    yield from refusals.bounds(manifest, ("pids", "tmp_size", "log_size"), rule)
    rule = "the nodes' GPUs are unknown here"
    yield from refusals.of_this_host(manifest, rule)
    if manifest.share_gpus:
        yield refused("share_gpus", "true", "Slurm cannot share a GPU between tasks")
    if isinstance(manifest.data, DataTable):
        rule = "data is fetched on this host, which the nodes cannot access"
        hint = "fetch it into a directory that all nodes share, and set `data = DIRECTORY`"
        yield refused("data.fetch", to_toml(manifest.data.fetch), rule, hint)
    if manifest.tensorboard:
        rule = "the kit starts TensorBoard only for tasks on this host"
        hint = "remove it, and run `tensorboard --logdir runs/NAME/latest/output/tensorboard`"
        yield refused("tensorboard", "true", rule, hint)
    for name in manifest.secret:
        rule = "a Slurm job has no secret files"
        hint = 'use variables instead, e.g. `secrets = ["TOKEN"]` under [role.worker]'
        yield refused(f"secret.{name}", "", rule, hint)


def _without_image(manifest: Manifest) -> Iterator[Problem]:
    """Yields problems of keys that need a container: without `slurm.image` there is none."""
    rule = "without an Apptainer image, tasks run in the nodes' Python"
    for key in ("build", "tensorflow"):
        if value := getattr(manifest, key):
            yield refused(key, to_toml(value), rule, IMAGE)
    if not manifest.runs_in_kits_image and not manifest.build:
        yield refused("image", to_toml(manifest.image), rule, IMAGE)
    for number, mount in enumerate(manifest.mount):
        yield refused(f"mount.{number}.target", to_toml(mount.target), rule, IMAGE)
    if _reads_data_set(manifest) and not manifest.table(NAME, SlurmTable).datasets:
        hint: HintText = (
            "set the directory that has it on the nodes: ",
            Setting("slurm.datasets", "/shared/datasets"),
            "; docs/slurm.md shows how to make it",
        )
        yield refused(
            "data",
            to_toml(str(manifest.data)),
            f"{rule}, which does not have the kit's data sets",
            hint,
        )


def _reads_data_set(manifest: Manifest) -> bool:
    """Whether the program reads a data set of the kit's image; a user's program might."""
    is_user_program = manifest.program not in PROGRAMS
    reads = (
        "data" in manifest.model_fields_set
        if is_user_program
        else PROGRAMS[manifest.program].sample
    )
    return str(manifest.data) in DATA_SETS and bool(reads)


def _table(table: SlurmTable) -> Iterator[Problem]:
    """Yields the problems in the table `[slurm]`."""
    for key in ("partition", "account"):
        if (value := getattr(table, key)) and not ACCOUNT_NAME.fullmatch(value):
            rule = "not a valid Slurm name: letters, digits, _, -, ., @ and commas"
            yield Problem(f"slurm.{key}", to_toml(value), rule, "fix it")
    if table.time and not TIME.fullmatch(table.time):
        hint: HintText = ("for example ", Setting("slurm.time", "2:00:00"), " or `1-12`")
        rule = "not a Slurm time: minutes, H:M:S or DAYS-H:M:S"
        yield Problem("slurm.time", to_toml(table.time), rule, hint)
    for key in ("image", "trainer", "datasets", "python", "output"):
        value = getattr(table, key)
        if value.startswith("~") or not value.isprintable() or {*':,"\\'} & {*value}:
            rule = 'not a valid path for the script: it must not begin with ~ or contain : , " \\'
            yield Problem(f"slurm.{key}", to_toml(value), rule, "write a full path")
    for key, usual in (("python", "python3"), ("output", "runs")):
        if not getattr(table, key):
            yield Problem(
                f"slurm.{key}", '""', "cannot be empty", f'for example `{key} = "{usual}"`'
            )
    for number, option in enumerate(table.options):
        yield from _option(f"slurm.options.{number}", option)
    for number, line in enumerate(table.setup):
        if "\n" in line or not line.strip():
            rule = "must be a single line of shell"
            yield Problem(
                f"slurm.setup.{number}", to_toml(line), rule, "write one list entry per line"
            )


def _option(key_path: str, option: str) -> Iterator[Problem]:
    match = OPTION.fullmatch(option)
    if match is None:
        hint = 'for example `options = ["--constraint=ssd"]`'
        yield Problem(key_path, to_toml(option), "not a long option of sbatch: --name=value", hint)
    elif match[1] in OWN:
        hint = "remove it"
        if match[1] in ("account", "partition", "time", "output"):
            hint = f"write `{match[1]}` itself under [slurm]"
        yield Problem(key_path, to_toml(option), "the kit sets this option of sbatch", hint)
