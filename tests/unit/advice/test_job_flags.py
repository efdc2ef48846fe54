"""A program that is told its place by flags, and gets none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.advised import hints

KEYS = {"style": "all-tasks", "chief": 0}
ABSL = "".join(
    f"flags.DEFINE_string('{name}', '', '')\n"
    for name in ("train_dir", "job_name", "task_index", "ps_hosts", "worker_hosts")
)
ARGPARSE = ABSL.replace("flags.DEFINE_string('", "parser.add_argument('--").replace(", ''", "")
SLIM = "".join(
    f"flags.DEFINE_string('{name}', '', '')\n"
    for name in ("master", "task", "index", "ps_tasks", "worker_replicas", "train_dir")
)


@pytest.mark.parametrize(
    ("text", "line", "cure"),
    [
        (ABSL, 2, 'ARGS="--job_name={{ role }} --task_index={{ index }} --ps_hosts={{ ps_hosts }}'
         ' --worker_hosts={{ worker_hosts }}"'),
        (ARGPARSE, 2, "--worker_hosts={{ worker_hosts }}"),
        (SLIM, 1, 'ARGS="--master={{ master }} --task={{ index }} --ps_tasks={{ num_ps }}'
         ' --worker_replicas={{ num_replicas }}"'),
    ],
)  # fmt: skip
def test_the_templates_for_its_flags_are_told(
    text: str, line: int, cure: str, tmp_path: Path
) -> None:
    (hint,) = hints(text, tmp_path, args=["--train_dir=x"], **KEYS)
    assert hint.place == f"train.py:{line}"
    assert cure in hint.cure


@pytest.mark.parametrize(
    ("text", "args"),
    [
        (ABSL, ["--task_index={{ index }}"]),
        (ABSL, ["--ps_hosts", "a:1"]),
        (ABSL + "import os\nos.environ.get('TF_CONFIG')", []),
        ("flags.DEFINE_string('job_name', '', '')\nflags.DEFINE_string('index', '', '')", []),
        ("parser.add_argument('master')\nparser.add_argument(name)\nDEFINE_x()", []),
    ],
)
def test_what_may_be_right_is_left_alone(text: str, args: list[str], tmp_path: Path) -> None:
    assert not hints(text, tmp_path, args=args, **KEYS)
