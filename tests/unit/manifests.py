"""Random valid manifests, as keys for `tests.make.cluster`, and random texts for them."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

from hypothesis import strategies as st

from cluster_kit.plan.container_rules import RESERVED

TRAPS = (
    "on", "123", "null", "~", "", " ", "0x1f", "1e3", "2024-01-01", "yes", "a: b", "a #b", "- a",
    "*anchor", "&anchor", "!tag", "%directive", "@at", "`tick`", "{a}", "[a]", "|", ">", "?",
    "$HOME", "${HOME}", "$$", "$${A:-b}", "it's", '"', "'", "''", "\\n", "\n", "a\nb\n", "\t",
    "\r\n", "\x1b[0m", "\x85", "\u2028", "\ufeff", "é", "日本", "😀", "😀\n", "a\\", "\x7f",
)  # fmt: skip
texts = st.sampled_from(TRAPS) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40
)
TEMPLATES = ("--job={{ role }}", "--index={{ index }}", "{{ name }}@{{ ip }}:{{ port }}")
"""Arguments that differ between tasks."""
HOST_GPUS = 8
FREE = range(150, 250)
"""Offsets in a /24 that none of these small clusters uses by default."""

plain_arguments = texts.filter(lambda text: "{{" not in text and "{%" not in text)
WORDS = ("true", "False", "null", "NULL", "on", "No", "y", "_", "NCCL_SOCKET_IFNAME", "no_proxy")
"""Names that YAML reads as another type, and those of variables that the kit also sets."""
variables = st.sampled_from(WORDS) | st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True)
environments = st.dictionaries(
    variables.filter(lambda name: not RESERVED.fullmatch(name)), texts, max_size=3
)
seconds = st.floats(0.001, 1e6) | st.integers(1, 10**6)
LIMITS: dict[str, st.SearchStrategy[Any]] = {
    "cpus": st.floats(0.01, 64),
    "memory": st.integers(82 * 2**20, 2**32),
    "bandwidth": st.integers(64, 10**6).map("{}kbit".format),
    "environment": environments,
    "shm_size": st.just(6 * 2**20),
    "ulimits": st.dictionaries(
        st.sampled_from(["nofile", "core", "memlock"]), st.integers(64, 2**20), max_size=2
    ),
}
NOT_DRAWN = {"env_file", "secrets", "ports", "nodes", "gpus"}
"""Keys of `Limits` that need a file, a variable or a free port of the host, another engine, or no
GPU for the workers."""
GIVEN: dict[str, Any] = {
    "cpus": 0.5,
    "memory": "1g",
    "bandwidth": "1mbit",
    "environment": {"A": "1"},
    "secrets": ["B"],
    "env_file": "some.env",
    "shm_size": "512m",
    "ulimits": {"nofile": 1024},
    "ports": [6006],
    "nodes": "disk==ssd",
    "gpus": ["1"],
}
"""One value for every key of `[role.…]`: a key that is added to the schema needs one here."""
OTHERS: dict[str, Any] = {
    "cpus": 4.0,
    "memory": "2g",
    "bandwidth": "1gbit",
    "environment": {"A": "0"},
    "secrets": ["C"],
    "env_file": "other.env",
    "shm_size": "1g",
    "ulimits": {"nofile": "1:2"},
    "ports": ["80:90"],
    "nodes": "disk!=ssd",
    "gpus": ["0"],
}
limits = st.fixed_dictionaries({}, optional=LIMITS)
names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
coordinated = st.fixed_dictionaries(
    {
        "chief": st.just(1),
        "worker": st.integers(1, 4),
        "ps": st.integers(1, 3),
        "style": st.sampled_from(["auto", "coordinator"]),
    }
)
all_tasks = st.fixed_dictionaries(
    {
        "chief": st.integers(0, 1),
        "worker": st.integers(1, 4),
        "ps": st.integers(0, 3),
        "style": st.just("all-tasks"),
        "ps_runs": st.sampled_from(["server", "program"]),
    }
)
reduced = st.fixed_dictionaries(
    {"chief": st.just(0), "worker": st.integers(1, 4), "ps": st.just(0), "style": st.just("auto")}
)
subnets = st.builds(
    lambda base, prefix: str(IPv4Network((base, prefix), strict=False)),
    st.sampled_from(["10.77.3.0", "172.20.0.0", "192.168.200.0"]),
    st.integers(16, 24),
).filter(lambda cidr: not IPv4Network(cidr).overlaps(IPv4Network("192.168.1.0/24")))
rest = st.fixed_dictionaries(
    {"name": names, "evaluator": st.integers(0, 1), "data_worker": st.sampled_from([0, 0, 2])},
    optional={
        "tf1": st.just(False),
        "chief_job": st.sampled_from(["chief", "master"]),
        "addressing": st.sampled_from(["ip", "name"]),
        "port": st.integers(1024, 65534),
        "server": st.sampled_from(["native", "python"]),
        "retries": st.integers(0, 100),
        "success": st.sampled_from(["leader", "all"]),
        "restart": st.sampled_from([{"permanent": [3, "64-78"]}, {"permanent": ["128-255"]}]),
        "simulate_gpus": st.integers(0, 8),
        "gpu_check": st.booleans(),
        "program": st.sampled_from(["classifier", "train.py"]),
        "data": st.sampled_from(["digits", "../my images"]),
        "args": st.lists(plain_arguments | st.sampled_from(TEMPLATES), max_size=4),
        "deadline": st.fixed_dictionaries({}, optional={"start": seconds, "job": seconds}),
    },
)
images = st.sampled_from(
    [{}, {"requirements": "requirements.txt"}, {"image": "registry.example:5000/a/b:2"}]
)


@st.composite
def manifests(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the keys of a manifest that is valid on a host with eight GPUs."""
    keys: dict[str, Any] = draw(coordinated | all_tasks | reduced)
    reduces = keys["chief"] if not keys["ps"] else 0  # this chief needs a GPU as a worker does
    keys |= draw(rest) | draw(images) | draw(_gpus(keys["worker"] + reduces))
    roles = ("chief", "worker", "ps", "evaluator", "data_worker")
    keys["role"] = draw(st.fixed_dictionaries({}, optional=dict.fromkeys(roles, limits)))
    tasks = [f"{role}-{index}" for role in roles for index in range(keys[role])]
    keys["task"] = draw(st.dictionaries(st.sampled_from(tasks), limits, max_size=3))
    if draw(st.booleans()):
        keys["subnet"] = draw(subnets)
        pinned = draw(st.lists(st.sampled_from(tasks), unique=True, max_size=3))
        places = draw(st.permutations(FREE))
        for task, place in zip(pinned, places, strict=False):
            address = str(IPv4Network(keys["subnet"])[place])
            keys["task"][task] = {**keys["task"].get(task, {}), "ip": address}
    return keys


def _gpus(tasks: int) -> st.SearchStrategy[dict[str, Any]]:
    listed = st.permutations(range(HOST_GPUS)).map(lambda ids: {"gpus": ids[:tasks]})
    shared = st.fixed_dictionaries(
        {"gpus": st.just("auto"), "share_gpus": st.just(True)},
        optional={"gpus_per_worker": st.integers(1, 4), "gpu_memory": st.just("1g")},
    )
    return st.sampled_from([{}, {"gpus": "auto"}, {"gpus": "none"}]) | listed | shared
