"""The command line without an engine: render, schema, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cluster_kit.cli import up
from cluster_kit.platforms.platform import json_schema
from cluster_kit.run.outcome import Outcome
from tests.unit.command_line import MANIFEST, Cli


def test_render_writes_the_file_and_prints_its_path(cli: Cli, root: Path) -> None:
    result = cli("render", "demo")
    assert (result.code, result.out) == (0, "")
    assert "compose/demo/compose.yaml: 6 tasks on " in result.err
    written = yaml.safe_load((root / "compose/demo/compose.yaml").read_text())
    assert list(written["services"]) == [
        "chief-0", "worker-0", "worker-1", "ps-0", "ps-1", "evaluator-0",
    ]  # fmt: skip
    assert (root / "compose/demo/output").is_dir(), "or Docker would make it, as root"


def test_a_manifest_can_be_given_by_its_path(cli: Cli, root: Path) -> None:
    assert cli("render", "compose/demo.toml").code == 0
    assert (root / "compose/demo/compose.yaml").exists()


def test_options_override_the_manifest(cli: Cli, root: Path) -> None:
    result = cli(
        "render", "demo", "--workers", "3", "--ps", "1", "--name", "other",
        "--args", "--epochs 1", "--set", "port=4000", "--args=--a=b",
    )  # fmt: skip
    assert result.code == 0
    services = yaml.safe_load((root / "compose/other/compose.yaml").read_text())["services"]
    assert {"worker-2", "ps-0"} <= services.keys()
    assert "ps-1" not in services
    assert services["chief-0"]["command"] == ["run", "classifier", "--epochs", "1", "--a=b"]
    assert ":4000" in services["chief-0"]["environment"]["TF_CONFIG"]


def test_dry_run_prints_and_writes_nothing(cli: Cli, root: Path) -> None:
    result = cli("render", "demo", "--dry-run")
    assert result.code == 0
    assert result.out.startswith("# cluster-kit ")
    assert not (root / "compose/demo").exists()
    cli("render", "demo")
    assert (root / "compose/demo/compose.yaml").read_text() == result.out


def test_check_fails_if_the_file_is_missing_or_stale_and_prints_a_hint(
    cli: Cli, root: Path
) -> None:
    missing = cli("render", "demo", "--check")
    assert missing.code == 2
    assert "compose/demo/compose.yaml is missing" in missing.err
    assert "cluster-kit render demo" in missing.err
    cli("render", "demo")
    assert cli("render", "demo", "--check").code == 0
    (root / "compose" / "demo.toml").write_text(MANIFEST + "worker = 5\n")
    before = (root / "compose/demo/compose.yaml").read_text()
    stale = cli("render", "demo", "--check")
    assert stale.code == 2
    assert "is stale" in stale.err
    assert (root / "compose/demo/compose.yaml").read_text() == before


def test_diff_shows_changes_and_makes_none(cli: Cli, root: Path) -> None:
    cli("render", "demo")
    assert cli("render", "demo", "--diff").out == ""
    result = cli("render", "demo", "--diff", "--workers", "3")
    assert result.code == 0
    assert "+  worker-2:" in result.out
    assert result.out.startswith("--- compose/demo/compose.yaml")
    assert "worker-2" not in (root / "compose/demo/compose.yaml").read_text()


def test_render_prints_facts_as_json(cli: Cli, root: Path) -> None:
    facts = json.loads(cli("render", "demo", "--json").out)
    assert facts["file"] == str(root / "compose/demo/compose.yaml")
    assert facts["tasks"]["chief-0"].endswith(".10")
    assert facts["subnet"].endswith("/24")


def test_render_warns_about_problems_of_the_program(cli: Cli, root: Path) -> None:
    (root / "train.py").write_text(
        "import tensorflow as tf\nif flag:\n    tf.distribute.MultiWorkerMirroredStrategy()\n"
    )
    result = cli("render", "demo", "--program", "train.py")
    assert (result.code, result.out) == (0, "")
    assert "warning: train.py:3: MultiWorkerMirroredStrategy, but only the chief" in result.err
    assert (
        "warning" not in cli("render", "demo", "--program", "train.py", "--ps=0", "--chief=0").err
    )


def test_an_all_reduce_program_runs_on_all_tasks_without_ps(cli: Cli, root: Path) -> None:
    (root / "train.py").write_text(
        "import tensorflow as tf\ntf.distribute.MultiWorkerMirroredStrategy()\n"
    )
    result = cli("render", "demo", "--program", "train.py")
    assert result.code == 0
    assert "train.py:2: MultiWorkerMirroredStrategy: every worker runs the program" in result.err
    assert "ps-0" not in (root / "compose/demo/compose.yaml").read_text()
    refused = cli("render", "demo", "--program", "train.py", "--ps=1")
    assert refused.code == 2
    assert "→ write `--ps 0`" in refused.err


def test_an_unknown_manifest_is_a_usage_error_with_the_known_names(cli: Cli) -> None:
    result = cli("render", "dmo")
    assert result.code == 2
    assert "no manifest `dmo`" in result.err
    assert "did you mean `demo`? there are: all-reduce, clones, demo, " in result.err


def test_every_problem_of_a_manifest_is_printed_with_its_hint(cli: Cli, root: Path) -> None:
    (root / "compose" / "demo.toml").write_text(MANIFEST + "wrker = 5\nworker = 0\nport = 1\n")
    result = cli("render", "demo")
    assert result.code == 2
    assert "3 problems" in result.err
    for words in ("did you mean `worker`?", "write `worker = 1`", "write `port = 2222`"):
        assert words in result.err
    assert "Traceback" not in result.err


def test_an_error_is_json_with_json(cli: Cli) -> None:
    result = cli("render", "demo", "--workers", "0", "--json")
    told = json.loads(result.out)
    assert (result.code, told["success"], told["error"]["exit_code"]) == (2, False, 2)
    assert "--workers = 0" in told["error"]["message"]


def test_brackets_and_colons_of_a_manifest_are_printed_unchanged(cli: Cli) -> None:
    result = cli("render", "demo", "--set", "image=[bold]A:smile:")
    assert result.code == 2
    assert '"[bold]A:smile:"' in result.err


def test_git_ignores_rendered_files_and_nothing_else(cli: Cli, root: Path) -> None:
    (root / "compose" / "demo").mkdir()
    (root / "compose" / "demo" / "compose.override.yaml").write_text("services: {}\n")
    assert cli("render", "demo").code == 0
    written = {path.name for path in (root / "compose" / "demo").iterdir() if path.is_file()}
    ignored = set((root / "compose" / "demo" / ".gitignore").read_text().splitlines())
    assert written - ignored == {"compose.override.yaml"}


def test_new_prints_what_it_wrote_and_how_to_run_it(cli: Cli, root: Path) -> None:
    result = cli("new", "mine", "--style", "all-tasks")
    assert result.code == 0
    assert result.out.splitlines() == [
        "compose/mine.toml       the cluster: tasks, limits, deadlines",
        "programs/mine/train.py  the program: yours to change",
        "run it with `cluster-kit up mine`",
    ]
    assert cli("render", "mine").code == 0
    again = cli("new", "mine")
    assert again.code == 2
    assert "nothing is overwritten" in again.err


def test_an_unknown_style_of_new_is_answered_with_the_nearest(cli: Cli) -> None:
    result = cli("new", "mine", "--style", "alltasks")
    assert result.code == 2
    assert "--style 'alltasks' is not a style of a new cluster" in result.err
    assert "did you mean `all-tasks`?" in result.err


def test_up_prints_a_message_line_by_line_and_once(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "/home/you/pipeline.toml: 1 problem\n  steps = 0: must be 1 or more\n    → write 1"
    outcome = Outcome(
        "demo", False, 5, "failed", "chief-0", message, "", [], [], {"total": 2.0}, {}, "",
        str(root / "r"),
    )  # fmt: skip
    monkeypatch.setattr(up, "launch", lambda *_, **__: outcome)
    result = cli("up", "demo")
    assert result.code == 5
    assert result.out.splitlines() == [
        "failed after 2.0 s, blame chief-0",
        "  /home/you/pipeline.toml: 1 problem",
        "    steps = 0: must be 1 or more",
        "      → write 1",
        "  everything is in r",
    ]


def test_schema_prints_the_json_schema(cli: Cli) -> None:
    assert json.loads(cli("schema").out) == json_schema()


@pytest.mark.parametrize(
    "arguments",
    [("rendr",), ("render", "--wrkers", "2"), ("render", "--workers", "two"), ("render", "a", "b"),
     ("render", "demo", "--set", "gpus=1")],
)  # fmt: skip
def test_a_wrong_command_line_exits_with_2(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli(*arguments).code == 2


def test_the_versions_are_printed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    told = ["cluster-kit 1.2.3", "Docker Engine 26"]
    monkeypatch.setattr("cluster_kit.run.bug_report.versions", lambda *_: told)
    result = cli("--version")
    assert (result.code, result.out) == (0, "cluster-kit 1.2.3\nDocker Engine 26\n")


@pytest.mark.parametrize(
    "verb",
    [
        "up",
        "attach",
        "wait",
        "new",
        "render",
        "down",
        "status",
        "logs",
        "doctor",
        "schema",
        "image",
        "engine",
    ],
)
def test_every_verb_has_help(cli: Cli, verb: str) -> None:
    result = cli(verb, "--help")
    assert result.code == 0
    assert "Usage: cluster-kit" in result.out
