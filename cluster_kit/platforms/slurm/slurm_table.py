"""The table `[slurm]` of a manifest, and what Slurm cannot keep of one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import Field

from cluster_kit.errors import HintText, Problem, Setting
from cluster_kit.manifest.field_types import Strict, Text
from cluster_kit.manifest.schema import DataTable, Manifest
from cluster_kit.plan.tasks import names_in
from cluster_kit.platforms import refusals
from cluster_kit.platforms.refusals import HERE, REQUIRE, refused
from cluster_kit.programs.catalog import DATA_SETS, PROGRAMS
from cluster_kit.resolved import Cluster
from cluster_kit.util import paths
from cluster_kit.util.toml_text import to_toml

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


def settings_from(manifest: Manifest) -> Mapping[str, Any]:
    """Returns what the manifest's cluster keeps of the table, for `settings_of`."""
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
    """Returns the settings of a cluster that was planned for Slurm."""
    lists = {key: tuple(cluster.settings[key]) for key in ("options", "setup")}
    return SlurmSettings(**{**cluster.settings, **lists})


IMAGE = ("write ", Setting("slurm.image", "trainer.sif"), ", or take it out")
ACCOUNT_NAME = re.compile(r"[\w.,@-]+", re.ASCII)
TIME = re.compile(r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}")
OPTION = re.compile(r"--([a-z][a-z-]*)(=[\x20-\x7e]+)?")
OWN = (
    "account", "array", "cpus-per-task", "error", "export", "gpus-per-task", "het-group",
    "job-name", "mem", "mem-per-cpu", "ntasks", "output", "partition", "requeue", "signal", "time",
    "wait", "wrap",
)  # fmt: skip
"""Options of sbatch that the kit gives itself, or that its script cannot live with."""
_IN_LIMITS: dict[str, tuple[str, HintText]] = {
    "gpus": (
        "Slurm decides which GPUs a task gets",
        ("take it out, or give each worker some: ", REQUIRE),
    ),
    "ports": (
        "tasks have the nodes' own network: nothing is published on this host",
        "take it out: `ssh -L PORT:NODE:PORT` does that while it runs",
    ),
    "bandwidth": ("shaping it takes rights that a Slurm job does not have", HERE),
    "ulimits": (
        "Slurm gives tasks the limits of the shell that submits them: `ulimit` sets them",
        "take it out, and run `ulimit` before `sbatch`",
    ),
    "shm_size": ("tasks have the /dev/shm of their nodes", "take it out"),
    "env_file": (
        "its format is that of Compose, which the nodes do not have",
        "write its names in `secrets`, or `set -a; . FILE; set +a` in `setup` of [slurm]",
    ),
    "nodes": (
        "nodes of Slurm have features, not labels",
        'write under [slurm]: `options = ["--constraint=FEATURE"]`',
    ),
}


def check_slurm(manifest: Manifest) -> Iterator[Problem]:
    """Yields what a Slurm job cannot keep."""
    yield from _addresses(manifest)
    yield from _of_this_host(manifest)
    if not manifest.table(NAME, SlurmTable).image:
        yield from _without_image(manifest)
    for table, limits in manifest.limits_by_table():
        yield from refusals.in_limits(table, limits, _IN_LIMITS)
        yield from refusals.in_clear(table, limits, "sbatch.sh", ", and export the variable")
    yield from _table(manifest.table(NAME, SlurmTable))


def _addresses(manifest: Manifest) -> Iterator[Problem]:
    hint = "write {{ ps_hosts }}, {{ worker_hosts }} or {{ master }}, or read TF_CONFIG"
    rule = "a task has the address of its node, which is known when the job starts, not now"
    yield from refusals.addresses(manifest, rule, hint)
    for number, argument in enumerate(manifest.args):
        if "port" in names_in([argument]):
            rule = "a task's port is known when the job starts, not now"
            yield refused(f"args.{number}", to_toml(argument), rule, hint)
    own = "the network is that of the nodes"
    yield from refusals.own_network(manifest, own)
    for key in ("encrypted", "internal"):
        if getattr(manifest.network, key):
            yield refused(f"network.{key}", "true", own)


def _of_this_host(manifest: Manifest) -> Iterator[Problem]:
    rule = "its nodes and Slurm bound that, and /tmp is a directory of the node's"
    yield from refusals.bounds(manifest, ("pids", "tmp_size", "log_size"), rule)
    rule = "whether the nodes have GPUs, and which, is not known here"
    yield from refusals.of_this_host(manifest, rule)
    if manifest.share_gpus:
        yield refused("share_gpus", "true", "Slurm gives a GPU to one task at a time")
    if isinstance(manifest.data, DataTable):
        rule = "data are fetched on this host, which the nodes do not see"
        hint = "fetch them into a directory that all nodes share, and name it: `data = DIRECTORY`"
        yield refused("data.fetch", to_toml(manifest.data.fetch), rule, hint)
    if manifest.tensorboard:
        rule = "the kit starts TensorBoard beside tasks of this host only"
        hint = "take it out: `tensorboard --logdir runs/NAME/latest/output/tensorboard` shows it"
        yield refused("tensorboard", "true", rule, hint)
    for name in manifest.secret:
        rule = "a Slurm job has no secrets that are files"
        hint = 'write names of variables, e.g. `secrets = ["TOKEN"]`, under [role.worker]'
        yield refused(f"secret.{name}", "", rule, hint)


def _without_image(manifest: Manifest) -> Iterator[Problem]:
    """Yields what takes a container: without `slurm.image` tasks run in the nodes' own Python."""
    rule = "without an image of Apptainer tasks run in the nodes' own Python"
    for key in ("build", "tensorflow"):
        if value := getattr(manifest, key):
            yield refused(key, to_toml(value), rule, IMAGE)
    if not manifest.runs_in_kits_image and not manifest.build:
        yield refused("image", to_toml(manifest.image), rule, IMAGE)
    for number, mount in enumerate(manifest.mount):
        yield refused(f"mount.{number}.target", to_toml(mount.target), rule, IMAGE)
    if _reads_data_set(manifest) and not manifest.table(NAME, SlurmTable).datasets:
        hint: HintText = (
            "name the directory that has it on the nodes: ",
            Setting("slurm.datasets", "/shared/datasets"),
            "; docs/slurm.md says how it is made",
        )
        yield refused("data", to_toml(str(manifest.data)), f"{rule}, which has no data sets", hint)


def _reads_data_set(manifest: Manifest) -> bool:
    """Whether the program reads a data set of the kit's image; one of the user's own might."""
    own = manifest.program not in PROGRAMS
    reads = "data" in manifest.model_fields_set if own else PROGRAMS[manifest.program].sample
    return str(manifest.data) in DATA_SETS and bool(reads)


def _table(table: SlurmTable) -> Iterator[Problem]:
    """Yields what is wrong in `[slurm]`."""
    for key in ("partition", "account"):
        if (value := getattr(table, key)) and not ACCOUNT_NAME.fullmatch(value):
            rule = "not a name of Slurm: letters, digits, _, -, ., @ and commas"
            yield Problem(f"slurm.{key}", to_toml(value), rule, "fix it")
    if table.time and not TIME.fullmatch(table.time):
        hint: HintText = ("for example ", Setting("slurm.time", "2:00:00"), " or `1-12`")
        rule = "not a time as Slurm writes it: minutes, H:M:S or DAYS-H:M:S"
        yield Problem("slurm.time", to_toml(table.time), rule, hint)
    for key in ("image", "trainer", "datasets", "python", "output"):
        value = getattr(table, key)
        if value.startswith("~") or not value.isprintable() or {*':,"\\'} & {*value}:
            rule = 'no path that the script can use: no ~ at its start, none of : , " \\ in it'
            yield Problem(f"slurm.{key}", to_toml(value), rule, "write the whole path")
    for key, usual in (("python", "python3"), ("output", "runs")):
        if not getattr(table, key):
            yield Problem(
                f"slurm.{key}", '""', "cannot be empty", f'for example `{key} = "{usual}"`'
            )
    for number, option in enumerate(table.options):
        yield from _option(f"slurm.options.{number}", option)
    for number, line in enumerate(table.setup):
        if "\n" in line or not line.strip():
            rule = "not one line of shell"
            yield Problem(f"slurm.setup.{number}", to_toml(line), rule, "write one line for each")


def _option(key_path: str, option: str) -> Iterator[Problem]:
    match = OPTION.fullmatch(option)
    if match is None:
        hint = 'for example `options = ["--constraint=ssd"]`'
        yield Problem(key_path, to_toml(option), "not a long option of sbatch: --name=value", hint)
    elif match[1] in OWN:
        hint = "take it out"
        if match[1] in ("account", "partition", "time", "output"):
            hint = f"write `{match[1]}` itself under [slurm]"
        yield Problem(key_path, to_toml(option), "the kit gives sbatch this option itself", hint)
