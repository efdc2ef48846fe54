"""A program that takes its role from flags, and gets none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.advice.of_program import fit
from cluster_kit.cli.manifest_options import values
from cluster_kit.platforms.platform import load
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


def problems(text: str, folder: Path, manifest: str = "", **overrides: Any) -> list[str]:
    """Returns the messages that keep a program from being started with these lines or options."""
    (folder / "train.py").write_text(text, encoding="utf-8")
    file = folder / "demo.toml"
    file.write_text(f'format = 1\nname = "demo"\n{manifest}', encoding="utf-8")
    loaded = load(file, overrides)
    found = fit(folder / "train.py", loaded)
    assert not any("takes --" in hint.what for hint in found.hints), "it is said once"
    return [problem.text(loaded.command_line) for problem in found.problems]


def test_a_program_without_its_flags_is_not_started_and_the_option_is_named(tmp_path: Path) -> None:
    options = values({"program": str(tmp_path / "train.py"), "tf1": "true"})
    (text,) = problems(ABSL, tmp_path, "chief = 0\n", **options)
    arguments = (
        "--job_name={{ role }} --task_index={{ index }} --ps_hosts={{ ps_hosts }}"
        " --worker_hosts={{ worker_hosts }}"
    )
    assert text == (
        "--args: the program takes --job_name, --task_index, --ps_hosts, "
        "--worker_hosts (train.py:2), and no argument sets them, so no task knows its role and "
        f"index\n    → write `--args '{arguments}'`"
    )
    assert values({"args": arguments})["extra_args"] == arguments.replace(" --", "\n--").split("\n")


def test_a_flag_may_have_a_short_form_before_it(tmp_path: Path) -> None:
    short = ARGPARSE.replace("('--job_name'", "('-j', '--job_name'")
    (text,) = problems(short, tmp_path, 'style = "all-tasks"\nchief = 0\n')
    assert '→ write `args = ["--job_name={{ role }}", "--task_index={{ index }}", ' in text


def test_in_a_manifest_the_message_names_the_key(tmp_path: Path) -> None:
    lines = 'program = "train.py"\nargs = ["--train_dir=x"]\nstyle = "all-tasks"\nchief = 0\n'
    (text,) = problems(ARGPARSE, tmp_path, lines)
    assert text.startswith('args = ["--train_dir=x"]: the program takes --job_name')
    assert '→ write `args = ["--train_dir=x", "--job_name={{ role }}", ' in text
    (text,) = problems(SLIM, tmp_path, lines)
    assert (
        '"--master={{ master }}", "--task={{ index }}", "--ps_tasks={{ num_ps }}", '
        '"--worker_replicas={{ num_replicas }}"]`' in text
    )


def test_other_missing_parts_of_the_cluster_are_reported_with_it(tmp_path: Path) -> None:
    (text,) = problems(ABSL, tmp_path, **values({"program": str(tmp_path / "train.py")}))
    assert "`--style all-tasks` and `--chief 0`" in text
    (text,) = problems(SLIM, tmp_path, style="all-tasks")
    assert "chief" not in text
    chief = ABSL + "flags.DEFINE_string('chief_hosts', '', '')\n"
    (text,) = problems(chief, tmp_path, style="all-tasks")
    assert '"--chief_hosts={{ chief_hosts }}"]`' in text and "chief = 0" not in text


def test_a_program_for_tensorflow_1_also_gets_the_key(tmp_path: Path) -> None:
    old = "import tensorflow as tf\nflags = tf.app.flags\n" + ABSL
    (text,) = problems(old, tmp_path, **values({"program": str(tmp_path / "train.py")}))
    assert text.endswith("`--tf1` and `--chief 0`")
    (text,) = problems(old, tmp_path, 'program = "train.py"\nchief = 1\nps = 1\n')
    assert text.endswith("` and `tf1 = true` and `chief = 0`")


DEFAULTS = ABSL.replace("'ps_hosts', ''", "'ps_hosts', os.environ['PS']")
BY_KEYWORD = ABSL.replace("flags.DEFINE_string('", "parser.add_argument('--").replace(
    "', '', ''", "', default=os.environ.get('X')"
)


@pytest.mark.parametrize(
    "text",
    [
        ABSL + "import tensorflow as tf\ntf.distribute.ParameterServerStrategy(resolver)\n",
        ABSL + "import tensorflow as tf\ntf.distribute.cluster_resolver.SlurmClusterResolver()\n",
        DEFAULTS,
        BY_KEYWORD,
    ],
)
def test_a_program_that_may_find_its_cluster_gets_only_a_warning(text: str, tmp_path: Path) -> None:
    (hint,) = (h for h in hints(text, tmp_path, **KEYS) if "takes --" in h.what)
    assert hint.location == "train.py:2"
    assert 'args = ["--job_name={{ role }}", ' in hint.fix
    (tmp_path / "demo.toml").write_text('format = 1\nname = "demo"\n', encoding="utf-8")
    assert not fit(tmp_path / "train.py", load(tmp_path / "demo.toml")).problems


@pytest.mark.parametrize("index", ["task_index", "task_id"])
def test_role_and_index_without_addresses_lead_to_a_warning(index: str, tmp_path: Path) -> None:
    text = f"flags.DEFINE_string('job_name', '', '')\nflags.DEFINE_integer('{index}', 0, '')\n"
    (hint,) = hints(text, tmp_path, style="all-tasks", chief=1)
    assert hint.what == f"the program takes --job_name, --{index}"
    arguments = f'["--job_name={{{{ role }}}}", "--{index}={{{{ index }}}}"]'
    assert hint.fix == f"write `args = {arguments}` and `chief = 0`"
    (tmp_path / "demo.toml").write_text('format = 1\nname = "demo"\n', encoding="utf-8")
    assert not fit(tmp_path / "train.py", load(tmp_path / "demo.toml")).problems


def test_a_single_task_needs_no_flags(tmp_path: Path) -> None:
    lines = "chief = 0\nps = 0\nworker = 1\n"
    (tmp_path / "train.py").write_text(ABSL, encoding="utf-8")
    (tmp_path / "demo.toml").write_text(f'format = 1\nname = "demo"\n{lines}', encoding="utf-8")
    assert not fit(tmp_path / "train.py", load(tmp_path / "demo.toml")).problems


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
def test_uncertain_cases_are_accepted(text: str, args: list[str], tmp_path: Path) -> None:
    assert not hints(text, tmp_path, args=args, **KEYS)
    lines = f'style = "all-tasks"\nchief = 0\nargs = {json.dumps(args)}\n'
    assert not problems(text, tmp_path, lines)


@pytest.mark.parametrize(
    ("text", "args", "near"),
    [
        (ABSL, ["--task_index={{ index }}", "--workers_hosts={{ worker_hosts }}"], "worker_hosts"),
        (ABSL, ["--task_index", "0", "--train_dirs", "x"], "train_dir"),
        ("flags.DEFINE_integer('steps', 200, '')\n", ["--step", "300"], "steps"),
        ("p.add_argument('--epochs')\n", ["--epocs=3"], "epochs"),
        ("p.add_argument('--epochs')\n", ["--epochs", "3", "--epochz", "5"], "epochs"),
    ],
)
def test_a_misspelled_flag_is_reported(
    text: str, args: list[str], near: str, tmp_path: Path
) -> None:
    (hint,) = hints(text, tmp_path, args=args, **KEYS)
    assert hint.what.startswith("no flag `--")
    assert f"did you mean `--{near}` (train.py:" in hint.fix


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("p.add_argument('--epochs')\n", ["--epoch", "3"]),
        ("flags.DEFINE_bool('shuffle', True, '')\n", ["--noshuffle"]),
        ("flags.DEFINE_integer('steps', 200, '')\n", ["--seed=1", "--", "step"]),
        ("flags.DEFINE_integer('steps', 200, '')\n", ["--steps=1", "--step=1"]),
        ("print('--steps')\n", ["--step=1"]),
        ("p.add_argument('-s', '--steps')\np.add_argument('--step')\n", ["--steps=1"]),
        ("p.add_argument('--batch_size', '--batch-size')\n", ["--batch-size=1"]),
        ("p.add_argument('--augment', action=BooleanOptionalAction)\n", ["--no-augment"]),
    ],
)
def test_flags_that_can_be_intended_are_accepted(
    text: str, args: list[str], tmp_path: Path
) -> None:
    assert not hints(text, tmp_path, args=args, **KEYS)
