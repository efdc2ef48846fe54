"""Every kind of mistake in a manifest: where, what value, which rule, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.errors import ManifestError
from cluster_kit.load import load
from cluster_kit.plan import plan
from tests.make import GIB, OWN, gpus, host, inputs, network, problems_of

HEAD = 'format = 1\nname = "demo"\n'
NETWORKS = (
    network("172.17.0.0/16"),
    network("172.30.0.0/16", "Docker network other"),
    network("10.8.0.0/16", "a route of this host (tun0)"),
)
HOST = host(cpus=8, memory=16 * GIB, gpus=gpus(2), networks=NETWORKS)
FIXED = 'subnet = "172.28.0.0/24"\n'

# (what is written below the head, place, value, part of the rule, part of the cure)
MISTAKES = {
    "unknown key": ("wrker = 3", "wrker", "3", "no such key", "did you mean `worker`?"),
    "unknown key, nothing near": ("zzz = 1", "zzz", "1", "no such key", "known keys: addressing"),
    "unknown key of a table": (
        "[deadline]\nstrat = 1", "deadline.strat", "1", "no such key", "did you mean `start`?"
    ),
    "unknown key of a task": (
        "[task.worker-1]\ncpu = 1", "task.worker-1.cpu", "1", "no such key", "`cpus`"
    ),
    "unknown role": ("[role.boss]\ncpus = 1", "role.boss", "{'cpus': 1}", "no such key", "chief"),
    "limits of a task beside its table": (
        "[worker-1]\ncpus = 1", "worker-1", "{'cpus': 1}", "no such key", "`worker`"
    ),
    "text for a count": ('worker = "3"', "worker", '"3"', "must be a whole number", "1 or more"),
    "half a worker": ("worker = 2.0", "worker", "2.0", "must be a whole number", "1 or more"),
    "truth for a count": ("worker = true", "worker", "true", "must be a whole number", "Workers"),
    "truth for a port": ("port = true", "port", "true", "must be a whole number", "beacon"),
    "number for a name": ("image = 5", "image", "5", "must be a text in quotes", "trainer"),
    "date for a data set": (
        "data = 2024-01-01", "data", "2024-01-01", "must be a text in quotes", "data set"
    ),
    "text for arguments": ('args = "-v"', "args", '"-v"', "must be a list", "Arguments"),
    "number among arguments": ("args = [1]", "args.0", "1", "must be a text in quotes", "Argum"),
    "number for a table": ("role = 5", "role", "5", "must be a table", "by role"),
    "list for a table": ("task = []", "task", "[]", "must be a table", "[task.worker-1]"),
    "number for a task": ("task.worker-1 = 5", "task.worker-1", "5", "must be a table", "one task"),
    "unknown addressing": ('addressing = "dns"', "addressing", '"dns"', "'ip' or 'name'", "TF_C"),
    "unknown server": ('server = "go"', "server", '"go"', "'native' or 'python'", "C API"),
    "unknown gpus": ('gpus = "all"', "gpus", '"all"', '"none", "auto" or a list', "UUIDs"),
    "table for gpus": ("gpus = {a = 1}", "gpus", "{'a': 1}", '"none", "auto" or a', "UUIDs"),
    "truth among gpus": ("gpus = [true]", "gpus", "[True]", "list of indexes or UUIDs", "UUIDs"),
    "no gpu per worker": (
        "gpus_per_worker = 0", "gpus_per_worker", "0", "greater than 0", "of each worker"
    ),
    "negative retries": ("retries = -1", "retries", "-1", "greater than or equal to 0", "Restarts"),
    "endless retries": ("retries = 1000", "retries", "1000", "less than or equal to 100", "Rest"),
    "no worker": ("worker = 0", "worker", "0", "at least one worker", "`worker = 1`"),
    "negative workers": ("worker = -2", "worker", "-2", "at least one worker", "`worker = 1`"),
    "negative ps": ("ps = -1", "ps", "-1", "cannot be negative", "`ps = 0` or more"),
    "two chiefs": ("chief = 2", "chief", "2", "at most one chief", "`chief = 1`"),
    "negative chief": ("chief = -1\nps = 0", "chief", "-1", "at most one chief", "`chief = 1`"),
    "two evaluators": ("evaluator = 2", "evaluator", "2", "at most one evaluator", "evaluator = 1"),
    "ps without chief": ("chief = 0", "ps", "2", "ps tasks need a chief", "`chief = 1`, or `ps"),
    "ps without chief, the other way out": (
        "chief = 0", "ps", "2", "or workers that run the program", '`style = "all-tasks"`'
    ),
    "chief without ps": ("ps = 0", "ps", "0", "at least 1 ps", "`ps = 1`, or `chief = 0`"),
    "chief without ps, the other way out": (
        "ps = 0", "ps", "0", "under a chief", '`style = "all-tasks"`'
    ),
    "coordinator without chief": (
        'style = "coordinator"\nchief = 0', "chief", "0", "needs a chief", "`chief = 1`, or `style"
    ),
    "coordinator without ps": (
        'style = "coordinator"\nps = 0', "ps", "0", "at least 1 ps", "`ps = 1`, or `style"
    ),
    "unknown style": ('style = "each"', "style", '"each"', "'coordinator' or 'all-", "all-tasks"),
    "a ps that runs the program under a coordinator": (
        'ps_runs = "program"', "ps_runs", '"program"', "every ps is a server", '"all-tasks"`'
    ),
    "unknown job of a ps": ('ps_runs = "x"', "ps_runs", '"x"', "'server' or 'program'", "ps runs"),
    "unknown job of the chief": ('chief_job = "boss"', "chief_job", '"boss"', "'master'", "job n"),
    "replicas without a ps": (
        'chief = 0\nps = 0\nprogram = "linear-regression"', "ps", "0",
        "At least 1 ps task is needed for distributed training", "write `ps = 1`",
    ),
    "chief and worker without a ps": (
        'style = "all-tasks"\nworker = 1\nps = 0\nprogram = "detection"\ndata = "digit-scenes"',
        "ps", "0", "At least 1 ps task is needed for distributed training", "`worker = 1`",
    ),
    "graph mode under a coordinator": (
        'program = "linear-regression"', "style", '"auto"', "every replica of", '"all-tasks"`'
    ),
    "digits for detection": (
        'program = "detection"', "data", '"digits"', "cannot read", '`data = "digit-scenes"`'
    ),
    "scenes for the classifier": (
        'data = "digit-scenes"', "data", '"digit-scenes"', "cannot read", '`data = "digits"`'
    ),
    "a billion workers": ("worker = 1000000000", "worker", "1000000000", "no subnet", "fewer"),
    "a billion ps": ("ps = 1000000000", "ps", "1000000000", "no subnet", "fewer tasks"),
    "low port": ("port = 80", "port", "80", "1024 to 65534", "`port = 2222`"),
    "last port": ("port = 65535", "port", "65535", "1024 to 65534", "`port = 2222`"),
    "negative port": ("port = -1", "port", "-1", "1024 to 65534", "`port = 2222`"),
    "no image": ('image = ""', "image", '""', "not the name of an image", "registry:5000"),
    "image in capitals": ('image = "My Image"', "image", '"My Image"', "not the name", "trainer"),
    "subnet too small": (
        'worker = 3\nps = 2\nsubnet = "172.28.0.0/29"',
        "subnet", '"172.28.0.0/29"', "too small", 'use a /28 or larger, or "auto"',
    ),
    "subnet not private": (
        'subnet = "172.72.0.0/24"', "subnet", '"172.72.0.0/24"', "not private", "172.28.0.0/24"
    ),
    "subnet over a Docker network": (
        'subnet = "172.30.4.0/24"', "subnet", '"172.30.4.0/24"',
        "overlaps 172.30.0.0/16 of Docker network other", 'choose another, or "auto"',
    ),
    "subnet over a host route": (
        'subnet = "10.8.1.0/24"', "subnet", '"10.8.1.0/24"',
        "overlaps 10.8.0.0/16 of a route of this host (tun0)", "choose another",
    ),
    "subnet too wide": (
        'subnet = "10.128.0.0/12"', "subnet", '"10.128.0.0/12"', "/16 to /29", "e.g. a /24"
    ),
    "subnet with host bits": (
        'subnet = "172.28.0.5/24"', "subnet", '"172.28.0.5/24"', "has host bits set", "CIDR"
    ),
    "no subnet at all": ('subnet = "big"', "subnet", '"big"', "Expected 4 octets", "CIDR"),
    "IPv6 subnet": ('subnet = "fd00::/64"', "subnet", '"fd00::/64"', "Expected 4", "CIDR"),
    "address on the gateway": (
        FIXED + '[task.worker-0]\nip = "172.28.0.1"',
        "task.worker-0.ip", '"172.28.0.1"', "taken by the gateway", "free address of 172.28.0.0/24",
    ),
    "address of the network": (
        FIXED + '[task.ps-0]\nip = "172.28.0.0"',
        "task.ps-0.ip", '"172.28.0.0"', "the network's own", "choose a free address",
    ),
    "broadcast address": (
        FIXED + '[task.ps-0]\nip = "172.28.0.255"',
        "task.ps-0.ip", '"172.28.0.255"', "the broadcast address", "choose a free address",
    ),
    "address of another task": (
        FIXED + '[task.worker-0]\nip = "172.28.0.101"',
        "task.worker-0.ip", '"172.28.0.101"', "taken by worker-1", "choose a free address",
    ),
    "two tasks pinned to one address": (
        FIXED + '[task.worker-0]\nip = "172.28.0.7"\n[task.worker-1]\nip = "172.28.0.7"',
        "task.worker-1.ip", '"172.28.0.7"', "taken by worker-0", "choose a free address",
    ),
    "address outside": (
        FIXED + '[task.worker-0]\nip = "172.29.0.7"',
        "task.worker-0.ip", '"172.29.0.7"', "outside the subnet 172.28.0.0/24", "free address",
    ),
    "address that is none": (
        FIXED + '[task.worker-0]\nip = "172.28.0"',
        "task.worker-0.ip", '"172.28.0"', "no IPv4 address", "172.28.0.5",
    ),
    "address without a fixed subnet": (
        '[task.worker-0]\nip = "172.28.0.7"',
        "task.worker-0.ip", '"172.28.0.7"', "needs a fixed subnet", 'subnet = "172.28.0.0/24"',
    ),
    "more CPUs than there are": (
        "[role.worker]\ncpus = 9", "role.worker.cpus", "9", "8 CPUs", "at most `cpus = 8`"
    ),
    "more CPUs for one task": (
        "[task.ps-1]\ncpus = 8.5", "task.ps-1.cpus", "8.5", "8 CPUs", "at most `cpus = 8`"
    ),
    "no CPU": ("[role.ps]\ncpus = 0", "role.ps.cpus", "0", "or equal to 0.01", "CPU limit"),
    "endless CPUs": ("[role.ps]\ncpus = inf", "role.ps.cpus", "inf", "finite", "CPU limit"),
    "CPUs that are no number": ("[role.ps]\ncpus = nan", "role.ps.cpus", "nan", "must be", "CPU"),
    "more memory than there is": (
        '[role.worker]\nmemory = "17g"',
        "role.worker.memory", "17.0 GiB", "this host has 16.0 GiB", "16384m",
    ),
    "more memory in sum": (
        'worker = 5\n[role.worker]\nmemory = "3g"\n[task.worker-0]\nmemory = "5g"',
        "memory", "", "add up to 17.0 GiB, this host has 16.0 GiB", "lower the limits",
    ),
    "memory without a meaning": (
        '[role.ps]\nmemory = "much"', "role.ps.memory", '"much"', "a size is a number", "Memory"
    ),
    "memory as a fraction": ("[role.ps]\nmemory = 1.5", "role.ps.memory", "1.5", "a size", "Mem"),
    "no memory": ('[role.ps]\nmemory = "0g"', "role.ps.memory", '"0g"', "at least 6 MiB", "Memory"),
    "memory in bytes by mistake": (
        "[role.ps]\nmemory = 512", "role.ps.memory", "512", "at least 6 MiB", "Memory limit"
    ),
    "bandwidth without a unit": (
        '[role.ps]\nbandwidth = "100"', "role.ps.bandwidth", '"100"', "number with a unit", "shaped"
    ),
    "bandwidth as a number": (
        "[role.ps]\nbandwidth = 100", "role.ps.bandwidth", "100", "number with a unit", "really shaped"
    ),
    "bandwidth in bytes": (
        '[role.ps]\nbandwidth = "9mbps"', "role.ps.bandwidth", '"9mbps"', '"100mbit"', "100mbit"
    ),
    "bandwidth of a string and a can": (
        '[task.ps-0]\nbandwidth = "9kbit"', "task.ps-0.bandwidth", '"9kbit"', "at least 64kbit", "1"
    ),
    "bandwidth of nobody's": (
        '[task.ps-0]\nbandwidth = "1000gbit"', "task.ps-0.bandwidth", '"1000gbit"', "100gbit", "10"
    ),
    "no bandwidth": (
        '[task.ps-0]\nbandwidth = "0mbit"', "task.ps-0.bandwidth", '"0mbit"', "at least 64", "100"
    ),
    "negative deadline": ("deadline.job = -1", "deadline.job", "-1", "more than 0", "program"),
    "deadline in days": ('deadline.job = "3d"', "deadline.job", '"3d"', "a duration is", "program"),
    "endless deadline": ("deadline.job = inf", "deadline.job", "inf", "at most a year", "program"),
    "deadline that is no number": ("deadline.job = nan", "deadline.job", "nan", "a duration", "p"),
    "one GPU for two tasks": (
        'gpus = ["0", "0"]', "gpus", "['0', '0']", "one GPU for two tasks", "each GPU once"
    ),
    "a GPU that is not there": ("gpus = [0, 5]", "gpus", '"5"', "no such GPU", "auto"),
    "uneven GPUs": (
        "worker = 1\ngpus = [0, 1]\ngpus_per_worker = 1",
        "gpus", "['0', '1']", "do not divide evenly", "list 1 GPUs",
    ),
    "missing program": (
        'program = "train.py"', "program", '"train.py"', "nor a file at", "mend the path"
    ),
    "no program": ('program = ""', "program", '""', "nor a file", "mend the path"),
    "missing data": ('data = "images"', "data", '"images"', "nor a directory at", "--data DIR"),
    "no data": ('data = ""', "data", '""', "nor a directory at", "--data DIR"),
    "data without class folders": (
        'data = "."', "data", '"."', "there is no Train/, Validate/, Test/", "--data DIR"
    ),
    "user nobody has": ('data = "~no-such-user/x"', "data", '"~no-such-user/x"', "nor a", "mend"),
    "override for a task that does not exist": (
        "[task.worker-5]\ncpus = 1", "task.worker-5", "", "there is no such task: worker = 2",
        "raise `worker` to 6, or take the override out",
    ),
    "override for a second chief": (
        "[task.chief-1]\ncpus = 1", "task.chief-1", "", "chief = 1", "take the override out"
    ),
    "the kit's own variable": (
        '[role.worker.environment]\nTF_CONFIG = "{}"',
        "role.worker.environment.TF_CONFIG", "", "the kit's own", "take it out",
    ),
    "the kit's own prefix": (
        '[task.ps-0.environment]\nCLUSTER_KIT_TASK = "x"',
        "task.ps-0.environment.CLUSTER_KIT_TASK", "", "the kit's own", "take it out",
    ),
    "GPU choice by environment": (
        '[role.ps.environment]\nNVIDIA_VISIBLE_DEVICES = "all"',
        "role.ps.environment.NVIDIA_VISIBLE_DEVICES", "", "the kit's own", "take it out",
    ),
    "variable with a dash": (
        '[role.ps.environment]\nA-B = "x"',
        "role.ps.environment.A-B", "", "no name of an environment variable", "letters",
    ),
    "number for a variable": (
        "[role.ps.environment]\nA = 1",
        "role.ps.environment.A", "1", "must be a text in quotes", "Environment variables",
    ),
    "NUL in an argument": ('args = ["a\\u0000b"]', "args.0", '"a\0b"', "NUL", "Arguments"),
    "NUL in a path": ('data = "a\\u0000b"', "data", '"a\0b"', "NUL", "data set"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_alone_with_place_value_rule_and_cure(
    mistake: str, tmp_path: Path
) -> None:
    text, place, value, rule, cure = MISTAKES[mistake]
    (problem,) = problems_of(HEAD + text, tmp_path, HOST)
    assert (problem.place, problem.value) == (place, value)
    assert rule in problem.rule
    assert cure in problem.cure


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("My Cluster", '"my-cluster"'),
        ("a.b", '"a-b"'),
        ("-a-", '"a"'),
        ("", '"my-cluster"'),
        ("Ü", '"my-cluster"'),
        ("demo\\n", '"demo"'),
        ("a" * 41, f'"{"a" * 40}"'),
        ("a" * 39 + "--b", f'"{"a" * 39}"'),
        ("../up", '"up"'),
        ("²", '"my-cluster"'),
    ],
)
def test_a_name_that_is_no_dns_label_gets_one_proposed(
    name: str, cure: str, tmp_path: Path
) -> None:
    (problem,) = problems_of(f'format = 1\nname = "{name}"', tmp_path)
    assert problem.place == "name"
    assert "DNS label" in problem.rule
    assert f"`name = {cure}`" in problem.cure
    assert not problems_of(f"format = 1\nname = {cure}", tmp_path)


@pytest.mark.parametrize(
    "task", ["worker-01", "worker--1", "worker-²", "worker", "boss-0", "worker-1 ", "Worker-1", "-"]
)
def test_a_task_name_that_none_could_have_is_told_how_they_look(task: str, tmp_path: Path) -> None:
    (problem,) = problems_of(f'{HEAD}[task."{task}"]\ncpus = 1', tmp_path)
    assert problem.place == f"task.{task}"
    assert "called like `worker-1`" in problem.cure


def test_format_and_name_are_required(tmp_path: Path) -> None:
    form, name = problems_of("", tmp_path)
    assert (form.place, form.rule, form.cure) == ("format", "is required", "add `format = 1`")
    assert (name.place, name.cure) == ("name", 'add `name = "my-cluster"`')


def test_another_format_is_named_as_such(tmp_path: Path) -> None:
    (problem,) = problems_of('format = 2\nname = "demo"', tmp_path)
    assert (problem.place, problem.value, problem.rule) == (
        "format",
        "2",
        "this kit reads format 1",
    )


def test_shape_and_meaning_are_reported_at_once_in_the_manifests_order(tmp_path: Path) -> None:
    text = HEAD + (
        'wrker = 3\nchief = 2\nworker = 0\nps = -1\nevaluator = 7\nprogram = "no.py"\n'
        'data = "nowhere"\nsubnet = "8.8.8.0/24"\nport = "x"\naddressing = "dns"\n'
        'gpus = ["0", "9"]\nretries = 1.5\n'
        '[deadline]\njob = "soon"\n[role.worker]\ncpus = 99\nmemory = "9999g"\n'
        '[role.ps.environment]\nTF_CONFIG = "x"\n'
        "[task.wrkr-1]\ncpus = 1\n"
    )
    found = [problem.place for problem in problems_of(text, tmp_path, HOST)]
    assert found == [
        "chief", "worker", "ps", "evaluator", "program", "data", "subnet", "port", "addressing",
        "gpus", "retries", "deadline.job",
        "role.worker.cpus", "role.worker.memory", "role.ps.environment.TF_CONFIG",
        "task.wrkr-1", "wrker",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('worker = "3"\n[task.worker-2]\ncpus = 1', ["worker"]),
        ('worker = "3"\ngpus = [0]', ["worker"]),
        ('chief = "1"\nps = 0', ["chief"]),
        ('style = "x"\nps = 0', ["style"]),
        ('style = 5\nchief = 0\nps_runs = "program"', ["style"]),
        ('worker = "1"\nchief = 0\nps = 0\nprogram = "linear-regression"', ["worker"]),
        ('chief = true\nps_runs = "program"', ["chief"]),
        ('subnet = 5\n[task.worker-0]\nip = "172.28.0.7"', ["subnet"]),
        ('program = 5\ndata = "."', ["program"]),
    ],
)
def test_a_broken_key_starts_no_second_complaint_about_its_default(
    text: str, places: list[str], tmp_path: Path
) -> None:
    assert [p.place for p in problems_of(HEAD + text, tmp_path, HOST)] == places


def test_the_error_names_file_and_count_and_every_line(tmp_path: Path) -> None:
    file = tmp_path / "demo.toml"
    file.write_text(HEAD + "worker = 0\nport = 80\n", encoding="utf-8")
    read = load(file)
    with pytest.raises(ManifestError) as caught:
        plan(read, inputs(read.manifest), host(), OWN)
    assert caught.value.message.splitlines() == [
        f"{file}: 2 problems",
        "  worker = 0: a cluster needs at least one worker",
        "    → write `worker = 1`",
        "  port = 80: must be 1024 to 65534 (unprivileged; the next port is the beacon's)",
        "    → write `port = 2222`",
    ]
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("value", ["true", "1.0"])
def test_a_format_that_only_equals_one_is_none(tmp_path: Path, value: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'format = {value}\nname = "mine"\n')
    problem = load(file).problems[0]
    assert (problem.place, problem.rule) == ("format", "this kit reads format 1")


def test_a_wrong_type_is_answered_with_an_example(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('format = 1\nname = "mine"\nps = "two"\n[deadline]\nstart = []\n')
    cures = {problem.place: problem.cure for problem in load(file).problems}
    assert cures["ps"].startswith("for example `ps = 2`: ")
    assert cures["deadline.start"].startswith("for example `start = 120`: ")
