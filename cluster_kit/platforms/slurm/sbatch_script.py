"""Renders the script that `sbatch` runs. Pure."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass

from cluster_kit.contract.times import FAILED_JOB_GRACE_S, WORKER_GRACE_S
from cluster_kit.platforms.container import ContainerSpec, container_specs, plan_hash
from cluster_kit.platforms.rendered_file import header
from cluster_kit.platforms.secret_values import without_secrets
from cluster_kit.platforms.slurm import sbatch_texts
from cluster_kit.platforms.slurm.sbatch_texts import Pair, Texts, names
from cluster_kit.platforms.slurm.slurm_table import SlurmSettings, settings_of
from cluster_kit.resolved import TRAINER, Cluster
from cluster_kit.util import templating
from cluster_kit.util.masking import without_url_passwords

MIB = 2**20
MARGIN_S = 600
"""What the time limit has on top of all deadlines: for the nodes, and for the end."""
WARNING_S = 60
"""The script gets SIGTERM so many seconds before Slurm's time limit: the leader saves."""


@dataclass(frozen=True)
class Part:
    """A component of a heterogeneous job, or the whole job."""

    number: int
    options: tuple[str, ...]
    nodes: str
    slots: str
    tasks: str
    step: str


def parts(cluster: Cluster, specs: Mapping[str, ContainerSpec]) -> tuple[Part, ...]:
    """Returns the parts, in the order of their first tasks: tasks that ask for the same are one."""
    kinds: dict[tuple[int, int, int], list[str]] = {}
    for name, spec in specs.items():
        cpus = math.ceil(spec.cpus or 1)
        memory = 0 if spec.memory is None else math.ceil(spec.memory / cpus / MIB)
        gpus = len(spec.devices.ids) if spec.devices else 0
        kinds.setdefault((cpus, memory, gpus), []).append(name)
    several = len(kinds) > 1
    return tuple(
        _part(cluster, number, asked, tasks, f"_HET_GROUP_{number}" if several else "")
        for number, (asked, tasks) in enumerate(kinds.items())
    )


def _part(
    cluster: Cluster, number: int, asked: tuple[int, int, int], tasks: Sequence[str], suffix: str
) -> Part:
    cpus, memory, gpus = asked
    resources = [f"--ntasks={len(tasks)}", f"--cpus-per-task={cpus}"]
    resources += [f"--mem-per-cpu={memory}M"] if memory else []
    resources += [f"--gpus-per-task={gpus}"] if gpus else []
    alone = [] if number else list(_of_the_job(cluster))
    group = [f"--het-group={number}"] if suffix else []
    return Part(
        number=number,
        options=(*alone, *resources, *_everywhere(cluster)),
        nodes=f"SLURM_JOB_NODELIST{suffix}",
        slots=f"SLURM_TASKS_PER_NODE{suffix}",
        tasks=names(tasks),
        step=" ".join([*group, *resources]),
    )


def _of_the_job(cluster: Cluster) -> Iterator[str]:
    """Yields the options that only the first part has."""
    yield f"--job-name={cluster.project}"
    yield f"--output={cluster.project}-%j.log"
    yield f"--signal=B:TERM@{WARNING_S}"
    yield "--no-requeue"
    on, deadlines = settings_of(cluster), cluster.deadlines
    if on.account:
        yield f"--account={on.account}"
    if on.time or deadlines.job:
        whole = deadlines.start + deadlines.job + deadlines.evaluator_grace + MARGIN_S
        yield f"--time={on.time or math.ceil(whole / 60)}"


def _everywhere(cluster: Cluster) -> Iterator[str]:
    """Yields the options that each part has."""
    on = settings_of(cluster)
    if on.partition:
        yield f"--partition={on.partition}"
    yield from on.options


LIBRARY = ("sbatch-task.sh", "sbatch-job.sh")
ENVIRONMENT = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "268435456",
    "MALLOC_TOP_PAD_": "16777216",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_USE_LEGACY_KERAS": "1",
}
"""What the kit's image has as variables; the nodes' own values win."""


def render(cluster: Cluster) -> str:
    """Returns the script: the same cluster gives the same text."""
    on = settings_of(cluster)
    specs = dict(zip((task.name for task in cluster.tasks), container_specs(cluster), strict=True))
    first, texts = specs[cluster.tasks[0].name], Texts(cluster)
    form, jobs = sbatch_texts.cluster_json(cluster)
    secrets = sorted({name for spec in specs.values() for name in spec.secrets})
    grace = max(WORKER_GRACE_S, cluster.deadlines.evaluator_grace if cluster.evaluators else 0)
    stop = first.shared.stop_grace_s
    return templating.kit_template("sbatch.sh.j2").render(
        header=header(cluster, plan_hash(cluster), own_lines(cluster, first)),
        parts=parts(cluster, specs),
        name=cluster.name,
        tasks=names(task.name for task in cluster.tasks),
        count=len(cluster.tasks),
        leader=cluster.leader.name,
        evaluators=names(task.name for task in cluster.evaluators),
        restarts=max(spec.restarts for spec in specs.values()),
        first_port="" if on.port is None else on.port,
        grace_s=math.ceil(grace) + stop,
        failed_grace_s=math.ceil(FAILED_JOB_GRACE_S) + stop,
        stop_s=stop,
        places=_places(on),
        checks=list(_checks(on, secrets)),
        cluster={
            "format": form,
            "lists": " ".join(f'"$(json_list {names(tasks)})"' for _, tasks in jobs),
        },
        give='given+=("APPTAINERENV_$1=$2")' if on.image else 'given+=("$1=$2")',
        shared=sbatch_texts.shared(cluster, texts, first),
        cases=[{"blocks": blocks} for blocks in sbatch_texts.own(cluster, texts, specs)],
        commands=sbatch_texts.commands(cluster, texts, specs),
        mounts=sbatch_texts.mounts(cluster, specs) if on.image else (),
        setup=on.setup,
        environment=list(_environment(cluster, on, secrets)),
        start=_start(cluster, on, first),
        judge=list(_judge(on, first)),
        library="\n".join(map(templating.kit_text, LIBRARY)),
    )


def own_lines(cluster: Cluster, spec: ContainerSpec) -> list[str]:
    """What the script says of itself in its first lines."""
    on, name = settings_of(cluster), cluster.name
    lines = [
        f"Submit it: `sbatch compose/{name}/sbatch.sh`, in the directory that has compose/.",
        f"Watch it:  `squeue --me`, `tail -F {cluster.project}-*.log`;",
        f"           each task's log is {on.output}/{name}/latest/logs/TASK.log.",
        f"Cancel it: `scancel --name={cluster.project}`. Its leader's end decides the job.",
    ]
    if on.image:
        file = shlex.quote(on.image)
        lines += [
            "Its image: docker save -o trainer.tar " + spec.shared.image,
            f"           apptainer build {file} docker-archive://trainer.tar",
        ]
    elif cluster.requirements:
        needs = without_url_passwords(cluster.requirements)
        lines.append(f"Its Python needs: {' '.join(needs.split())}")
    return lines


def _places(on: SlurmSettings) -> tuple[Pair, ...]:
    """The directories and files that the script is told of."""
    found = {"output": on.output}
    found |= {"image": on.image} if on.image else {"python": on.python, "trainer": on.trainer}
    return tuple(Pair(name, shlex.quote(value)) for name, value in found.items())


def _checks(on: SlurmSettings, secrets: Iterable[str]) -> Iterator[str]:
    """Yields lines that end the job before it starts anything if something is missing."""
    if on.image:
        hint = "build it, as the first lines of this script say, or fix [slurm] image"
        yield f'[[ -r $image ]] || refuse 3 "the image $image cannot be read" {shlex.quote(hint)}'
    else:
        yield "[[ $trainer == /* ]] || trainer=$PWD/$trainer"
        hint = "name the directory that has it on every node: --set slurm.trainer=DIRECTORY"
        said = '"the package trainer is not in $trainer"'
        yield f"[[ -r $trainer/trainer/__main__.py ]] || refuse 3 {said} {shlex.quote(hint)}"
    for name in secrets:
        yield (
            f"[[ -n ${{{name}+set}} ]] || refuse 3 '{name} is not set, which tasks are to have' "
            "'export it before sbatch'"
        )


def _environment(cluster: Cluster, on: SlurmSettings, secrets: Iterable[str]) -> Iterator[str]:
    """Yields the lines that make up for the image, or hand on what it would not see."""
    if on.image:
        # Exported, since the arguments of a process can be read by every user of its node.
        yield from (f'export APPTAINERENV_{name}="${name}"' for name in secrets)
        if any(task.gpus for task in cluster.tasks):
            yield 'give CUDA_VISIBLE_DEVICES "${CUDA_VISIBLE_DEVICES:-}"'
        return
    yield "[[ $trainer == /* ]] || trainer=$PWD/$trainer"
    yield (
        'command -v "$python" > /dev/null || refuse 3 "$python was not found on $SLURMD_NODENAME" '
        "'fix [slurm] python, or make it available by [slurm] setup'"
    )
    yield "export PYTHONPATH=$trainer${PYTHONPATH:+:$PYTHONPATH}"
    for name, value in ENVIRONMENT.items():
        yield f"export {name}=${{{name}-{value}}}"


def _start(cluster: Cluster, on: SlurmSettings, spec: ContainerSpec) -> str:
    """The line that becomes a task's program."""
    if not on.image:
        return 'exec env "${given[@]}" "$python" -m trainer "${command[@]}"'
    binds = f'--bind "$run/output":{spec.shared.output} "${{binds[@]}}"'
    gpus = ["--nv"] if cluster.gpu_driver == "nvidia" and any(t.gpus for t in cluster.tasks) else []
    options = [
        "--cleanenv",
        "--contain",
        "--no-home",
        '--workdir "$TMPDIR"',
        "--pwd /tmp",
        *gpus,
        binds,
    ]
    return " ".join(
        [
            'exec env "${given[@]}" apptainer exec',
            *options,
            '"$image"',
            _entry(spec),
            '"${command[@]}"',
        ]
    )


def _judge(on: SlurmSettings, spec: ContainerSpec) -> Iterator[str]:
    """Yields the lines that have the verdict made by the tasks' Python, at the end of the job."""
    if not on.image:
        yield "export PYTHONPATH=$trainer${PYTHONPATH:+:$PYTHONPATH}"
        yield "cd / || return  # where Python finds no other module called trainer"
        yield '"$python" -m trainer verdict "$run" "$@"'
        return
    trainer = [mount for mount in spec.shared.mounts if mount.target == TRAINER]
    binds = "".join(f" --bind {shlex.quote(f'{m.source}:{m.target}:ro')}" for m in trainer)
    run = spec.shared.output
    yield (
        f'apptainer exec --cleanenv --contain --no-home --pwd / --bind "$run":{run}{binds} '
        f'"$image" {_entry(spec)} verdict {run} "$@"'
    )


def _entry(spec: ContainerSpec) -> str:
    return shlex.join(spec.shared.entrypoint or ("python3", "-m", "trainer"))


def cluster_text(cluster: Cluster) -> str:
    """The cluster as JSON, for the record of a run: without values of secrets."""
    return json.dumps(without_secrets(cluster), default=_plain) + "\n"


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)
