"""Renders the script that `sbatch` runs. Pure."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace

from cluster_kit.contract.times import FAILED_JOB_GRACE_S, WORKER_GRACE_S
from cluster_kit.errors import UsageError
from cluster_kit.platforms.container import Container, every_task, plan_hash, task_containers
from cluster_kit.platforms.rendered_file import header, parts_of, with_content
from cluster_kit.platforms.slurm.slurm_table import SlurmSettings, settings_of
from cluster_kit.platforms.variables import (
    SHARED,
    TRAINING,
    mode_of,
    no_proxy,
    shared_variables,
    without_secrets,
)
from cluster_kit.programs.catalog import DATA_SETS_IN_IMAGE
from cluster_kit.resolved import OUTPUT, TRAINER, Cluster
from cluster_kit.roles import ROLES
from cluster_kit.util import templating
from cluster_kit.util.masking import without_shell_values, without_url_passwords

PRIVATE = "\ue000{}\ue001"
_HELD = re.compile("\ue000(.*?)\ue001")
HOSTS = PRIVATE.format("$hosts")
BEACON = PRIVATE.format("$beacon")
INDEX = PRIVATE.format("$index")


class Texts:
    """Writes the texts of a cluster's tasks.

    In them, `worker-1:2222` is a placeholder for an address that the script determines. Without an
    image, a container's paths are placeholders for directories of the nodes.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._addresses = {cluster.address(task): task.name for task in cluster.tasks}
        self._beacon = cluster.beacon
        self._lists = {
            ",".join(map(cluster.address, tasks)): role
            for role in {task.role: None for task in cluster.tasks}
            if len(tasks := cluster.of(role)) > 1
        }
        roles = "|".join({task.role: "" for task in cluster.tasks})
        self._address = re.compile(
            rf"(?<![\w.-])(?:{roles})-\d+:(?:{cluster.port}|{cluster.port + 1})(?!\d)"
        )
        self._paths = {} if settings_of(cluster).image else _paths(cluster)
        targets = "|".join(sorted(map(re.escape, self._paths), key=len, reverse=True))
        self._path = re.compile(rf"(?<![^\s=,:\"'])(?:{targets})(?=[/,:\"'\s]|$)")

    def held(self, text: str, task: str = "") -> str:
        """Returns a text of a task with marks for the values that the script inserts."""
        if {"\ue000", "\ue001"} & {*text}:
            raise UsageError(
                f"{text!r}: the characters U+E000 and U+E001 are for the script's own use",
                "remove them, or run it on this host: `--engine compose`",
            )
        for addresses, role in self._lists.items():
            text = text.replace(addresses, PRIVATE.format(f"${{listed[{role}]}}"))
        text = self._address.sub(lambda match: self._found(match[0], task), text)
        if self._paths:
            text = self._path.sub(lambda match: self._paths[match[0]], text)
        return text

    def _found(self, address: str, own: str) -> str:
        if address == self._beacon:
            return BEACON
        task = self._addresses.get(address)
        if task is None:
            return address
        return PRIVATE.format("${address[$task]}" if task == own else f"${{address[{task}]}}")


def _paths(cluster: Cluster) -> dict[str, str]:
    """The directories of the nodes for a container's directories."""
    on = settings_of(cluster)
    places = {mount.target: mount.source for mount in cluster.mounts}
    if on.datasets:
        places[DATA_SETS_IN_IMAGE] = on.datasets
    return {**places, OUTPUT: PRIVATE.format("$run") + "/output"}


def word(text: str) -> str:
    """Returns a text that may have marks as one word of bash."""
    parts = _HELD.split(text)
    quoted = [
        f'"{part}"' if number % 2 else shlex.quote(part)
        for number, part in enumerate(parts)
        if part
    ]
    return "".join(quoted) or "''"


def task_words(tasks: Iterable[str]) -> str:
    """Returns names of tasks, each a word, with a braced range for those that follow each other."""
    runs: list[tuple[str, int, int]] = []
    for name in tasks:
        role, _, number = name.rpartition("-")
        index = int(number)
        if runs and runs[-1][0] == role and runs[-1][2] == index - 1:
            runs[-1] = (role, runs[-1][1], index)
        else:
            runs.append((role, index, index))
    return " ".join(
        f"{role}-{first}" if first == last else f"{role}-{{{first}..{last}}}"
        for role, first, last in runs
    )


NO_PROXY = ("NO_PROXY", "no_proxy")
DESCRIPTION = "cluster.json"
"""The name of the file with TF_CONFIG's cluster. It is in the output, the only directory of a run
that tasks in Apptainer see."""
FOUND = ("CLUSTER_KIT_TASK",)
"""Variables whose values the script finds out for each task."""


@dataclass(frozen=True)
class Pair:
    """A key and its value as a file's text."""

    name: str
    value: str


@dataclass(frozen=True)
class Block:
    """A branch of `case`: its tasks, and their variables or their command."""

    pattern: str
    variables: tuple[Pair, ...] = ()
    command: str = ""


def shared_pairs(cluster: Cluster, texts: Texts, common: Container) -> tuple[Pair, ...]:
    """Returns the variables of all tasks."""
    variables = {
        name: _with_hosts(cluster, value) if name in NO_PROXY else texts.held(value)
        for name, value in common.environment.items()
    }
    if settings_of(cluster).image:
        variables[SHARED] = f"{common.output}/{DESCRIPTION}"
    else:
        variables["CLUSTER_KIT_OUTPUT"] = PRIVATE.format("$run") + "/output"
        variables[SHARED] = f"{variables['CLUSTER_KIT_OUTPUT']}/{DESCRIPTION}"
    return _pairs(variables)


def own_blocks(
    cluster: Cluster, texts: Texts, specs: Mapping[str, Container]
) -> Iterator[tuple[Block, ...]]:
    """Yields the branches for roles whose tasks have the same variables, and those for tasks."""
    shared = shared_variables(cluster)
    tables = {
        name: dict(_own(cluster, texts, name, {**spec.besides(shared), **spec.hidden}))
        for name, spec in specs.items()
    }
    by_role, by_task = [], []
    for role in ROLES:
        names = [task.name for task in cluster.of(role)]
        if not names:
            continue
        first = tables[names[0]]
        same = {k: v for k, v in first.items() if all(tables[n].get(k) == v for n in names)}
        if same:
            by_role.append(Block(f"{role}-*", _pairs(same)))
        for name in names:
            rest = {k: v for k, v in tables[name].items() if k not in same}
            if rest:
                by_task.append(Block(name, _pairs(rest)))
    yield from (_merged(blocks) for blocks in (by_role, by_task) if blocks)


def _merged(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The branches, with equal ones merged."""
    patterns: dict[tuple[tuple[Pair, ...], str], list[str]] = {}
    for block in blocks:
        patterns.setdefault((block.variables, block.command), []).append(block.pattern)
    return tuple(
        Block(" | ".join(names), variables, command)
        for (variables, command), names in patterns.items()
    )


def _own(
    cluster: Cluster, texts: Texts, task: str, variables: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    evaluates = task in {one.name for one in cluster.evaluators}
    for name, value in variables.items():
        if name in (*FOUND, TRAINING) or (name == "TF_CONFIG" and not evaluates):
            continue
        held = texts.held(value, task)
        yield name, _with_hosts(cluster, value) if name in NO_PROXY else held


def _with_hosts(cluster: Cluster, value: str) -> str:
    """The value of NO_PROXY with the nodes in place of the tasks' names, which are not used."""
    return value.replace(no_proxy(cluster), f"localhost,127.0.0.1,{HOSTS}")


def command_blocks(
    cluster: Cluster, texts: Texts, specs: Mapping[str, Container]
) -> tuple[Block, ...]:
    """Returns the command of each role whose tasks differ at most by their index, else of each."""
    blocks = []
    for role in ROLES:
        names = [task.name for task in cluster.of(role)]
        held = [[texts.held(text, name) for text in specs[name].command] for name in names]
        if held and (common := _one(held)) is not None:
            blocks.append(Block(f"{role}-*", command=" ".join(map(word, common))))
        else:
            blocks += [
                Block(name, command=" ".join(map(word, words)))
                for name, words in zip(names, held, strict=True)
            ]
    return _merged(blocks)


def _one(commands_: Sequence[Sequence[str]]) -> list[str] | None:
    """The words from which the words of all tasks are made by their index; None if there are
    none."""
    if len({len(words) for words in commands_}) > 1:
        return None
    words_parts = [parts_of(words) for words in zip(*commands_, strict=True)]
    if any(parts is None or any(_cut(part) for part in parts) for parts in words_parts):
        return None
    return [INDEX.join(parts) for parts in words_parts if parts is not None]


def _cut(part: str) -> bool:
    """Returns whether a mark begins or ends outside of a part: the index would be in it."""
    return part.count("\ue000") != part.count("\ue001")


def cluster_json(cluster: Cluster) -> tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]:
    """Returns the format of TF_CONFIG's cluster for `printf`, and each job's tasks."""
    jobs = {
        cluster.job(role): tuple(task.name for task in cluster.of(role))
        for role, row in ROLES.items()
        if not row.evaluates and cluster.of(role)
    }
    return ", ".join(f"{json.dumps(job)}: %s" for job in jobs), tuple(jobs.items())


def mount_blocks(cluster: Cluster, specs: Mapping[str, Container]) -> tuple[Block, ...]:
    """Returns the mounts of each role besides the output."""
    blocks = []
    for role in ROLES:
        tasks = cluster.of(role)
        if tasks and (binds := _binds(specs[tasks[0].name])):
            blocks.append(Block(f"{role}-*", command=binds))
    return _merged(blocks)


def _binds(spec: Container) -> str:
    binds = [
        f"{mount.source}:{mount.target}" + (":ro" if mount.read_only else "")
        for mount in spec.mounts
    ]
    return " ".join(f"--bind {shlex.quote(bind)}" for bind in binds)


def _pairs(values: Mapping[str, str]) -> tuple[Pair, ...]:
    return tuple(Pair(name, word(value)) for name, value in sorted(values.items()))


MIB = 2**20
MARGIN_S = 600
"""The seconds by which the time limit exceeds all deadlines: for starting the nodes, and for the
end."""
WARNING_S = 60
"""The script gets SIGTERM this many seconds before Slurm's time limit, so that the leader saves."""


@dataclass(frozen=True)
class Part:
    """A component of a heterogeneous job, or the whole job."""

    number: int
    options: tuple[str, ...]
    nodes: str
    slots: str
    tasks: str
    step: str


def parts(cluster: Cluster, specs: Mapping[str, Container]) -> tuple[Part, ...]:
    """Returns the parts, in the order of their first tasks; tasks with equal requests form one
    part."""
    kinds: dict[tuple[int, int, int], list[str]] = {}
    for name, spec in specs.items():
        cpus = math.ceil(spec.cpus or 1)
        memory = 0 if spec.memory is None else math.ceil(spec.memory / cpus / MIB)
        gpus = len(spec.devices.ids) if spec.devices else 0
        kinds.setdefault((cpus, memory, gpus), []).append(name)
    several = len(kinds) > 1
    return tuple(
        _part(cluster, number, resources, tasks, f"_HET_GROUP_{number}" if several else "")
        for number, (resources, tasks) in enumerate(kinds.items())
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
        tasks=task_words(tasks),
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
    "MALLOC_TOP_PAD_": "67108864",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_USE_LEGACY_KERAS": "1",
}
"""Variables of the kit's image; the nodes' own values override them."""


def render(cluster: Cluster) -> str:
    """Returns the script: the same cluster gives the same text."""
    on = settings_of(cluster)
    specs = dict(zip((task.name for task in cluster.tasks), task_containers(cluster), strict=True))
    first, texts = specs[cluster.tasks[0].name], Texts(cluster)
    form, jobs = cluster_json(cluster)
    secrets = sorted({name for spec in specs.values() for name in spec.secrets})
    grace = max(WORKER_GRACE_S, cluster.deadlines.evaluator_grace if cluster.evaluators else 0)
    stop = first.stop_grace_s
    text = templating.kit_template("sbatch.sh.j2").render(
        header=header(cluster, plan_hash(cluster), own_lines(cluster, first)),
        parts=parts(cluster, specs),
        name=cluster.name,
        tasks=task_words(task.name for task in cluster.tasks),
        count=len(cluster.tasks),
        leader=cluster.leader.name,
        evaluators=task_words(task.name for task in cluster.evaluators),
        restarts=max(spec.restarts for spec in specs.values()),
        first_port="" if on.port is None else on.port,
        grace_s=math.ceil(grace) + stop,
        failed_grace_s=math.ceil(FAILED_JOB_GRACE_S) + stop,
        stop_s=stop,
        places=_places(on),
        checks=list(_checks(on, secrets)),
        cluster={
            "format": form,
            "lists": " ".join(f'"$(json_list {task_words(tasks)})"' for _, tasks in jobs),
        },
        give='given+=("APPTAINERENV_$1=$2")' if on.image else 'given+=("$1=$2")',
        shared=shared_pairs(cluster, texts, every_task(cluster)),
        cases=[{"blocks": blocks} for blocks in own_blocks(cluster, texts, specs)],
        commands=command_blocks(cluster, texts, specs),
        mounts=mount_blocks(cluster, specs) if on.image else (),
        setup=on.setup,
        environment=list(_environment(cluster, on, secrets)),
        start=_start(cluster, on, first),
        judge=list(_judge(cluster, on, first)),
        library="\n".join(map(templating.kit_text, LIBRARY)),
    )
    return with_content(text)


def own_lines(cluster: Cluster, spec: Container) -> list[str]:
    """The comment lines at the beginning of the script."""
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
            "Its image: docker save -o trainer.tar " + spec.image,
            f"           apptainer build {file} docker-archive://trainer.tar",
        ]
    elif cluster.requirements:
        needs = without_url_passwords(cluster.requirements)
        lines.append(f"Its Python needs: {' '.join(needs.split())}")
    return lines


def _places(on: SlurmSettings) -> tuple[Pair, ...]:
    """The directories and files that the script needs."""
    places = {"output": on.output}
    places |= {"image": on.image} if on.image else {"python": on.python, "trainer": on.trainer}
    return tuple(Pair(name, shlex.quote(value)) for name, value in places.items())


def _checks(on: SlurmSettings, secrets: Iterable[str]) -> Iterator[str]:
    """Yields lines that end the job before it starts anything if something is missing."""
    if on.image:
        hint = "build it, as the first lines of this script say, or fix [slurm] image"
        yield f'[[ -r $image ]] || refuse 3 "the image $image cannot be read" {shlex.quote(hint)}'
    else:
        yield "[[ $trainer == /* ]] || trainer=$PWD/$trainer"
        hint = "name the directory that has it on every node: --set slurm.trainer=DIRECTORY"
        refusal = '"the package trainer is not in $trainer"'
        yield f"[[ -r $trainer/trainer/__main__.py ]] || refuse 3 {refusal} {shlex.quote(hint)}"
    for name in secrets:
        yield (
            f"[[ -n ${{{name}+set}} ]] || refuse 3 '{name} is not set, which tasks are to have' "
            "'export it before sbatch'"
        )


def _environment(cluster: Cluster, on: SlurmSettings, secrets: Iterable[str]) -> Iterator[str]:
    """Yields the lines that replace the image's environment, or pass variables into the image."""
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


def _start(cluster: Cluster, on: SlurmSettings, spec: Container) -> str:
    """The line that executes a task's program."""
    if not on.image:
        return 'exec env "${given[@]}" "$python" -m trainer "${command[@]}"'
    binds = f'--bind "$run/output":{spec.output} "${{binds[@]}}"'
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


def _judge(cluster: Cluster, on: SlurmSettings, spec: Container) -> Iterator[str]:
    """Yields the lines that make the verdict at the end of the job, by the tasks' Python."""
    all_count = cluster.success is None or cluster.success.evaluator
    uncounted = () if all_count else (task.name for task in cluster.evaluators)
    without = "".join(f" --without {name}" for name in uncounted)
    if not on.image:
        yield "export PYTHONPATH=$trainer${PYTHONPATH:+:$PYTHONPATH}"
        yield "cd / || return  # where Python finds no other module called trainer"
        yield f'"$python" -m trainer verdict "$run" "$@"{without}'
        return
    trainer = [mount for mount in spec.mounts if mount.target == TRAINER]
    binds = "".join(f" --bind {shlex.quote(f'{m.source}:{m.target}:ro')}" for m in trainer)
    run = spec.output
    yield (
        f'apptainer exec --cleanenv --contain --no-home --pwd / --bind "$run":{run}{binds} '
        f'"$image" {_entry(spec)} verdict {run} "$@"{without}'
    )


def _entry(spec: Container) -> str:
    return shlex.join(spec.entrypoint or ("python3", "-m", "trainer"))


def cluster_text(cluster: Cluster) -> str:
    """The cluster as JSON, for the record of a run: without values of secrets."""
    shown = without_secrets(cluster)
    setup = tuple(map(without_shell_values, settings_of(cluster).setup))
    shown = replace(shown, settings={**shown.settings, "setup": setup})
    return json.dumps(shown, default=_plain) + "\n"


def mode_of_script(cluster: Cluster) -> int | None:
    """The script's permissions, None for the usual ones: it contains the lines of `setup`
    unchanged."""
    setup = settings_of(cluster).setup
    has_secrets = any(without_shell_values(line) != line for line in setup)
    return 0o600 if has_secrets else mode_of(cluster)


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)
