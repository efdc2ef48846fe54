"""The verbs for past runs: list, diff, prune; and the archive for a bug report."""

from __future__ import annotations

import json
import os
import re
import shutil
import tarfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cluster_kit.cli import runs
from cluster_kit.host import Moment
from cluster_kit.observe import user_requests
from cluster_kit.resolved import Origin
from cluster_kit.run.known_secrets import Known
from cluster_kit.run.run_directory import Record, write_record
from cluster_kit.workspace import RunDirectory, new_run
from tests.fakes.hosts import Machine
from tests.make import cluster
from tests.unit.cli.clusters_up import ClustersUp
from tests.unit.command_line import Cli
from tests.unit.stories import container


def saved(
    root: Path, hour: int, name: str = "demo", worker: int = 2, **outcome: Any
) -> RunDirectory:
    run = new_run(root / "runs" / name, datetime(2026, 11, 22, hour))
    write_record(run, Record("id", cluster(worker=worker), Moment(0.0, 0.0, ""), 100.0, {}, {}))
    facts = {"id": "id", "success": True, "metrics": {}, "timings_s": {"total": 9.5}, **outcome}
    run.outcome.write_text(json.dumps(facts))
    run.manifest.write_text(f'format = 1\nworker = {worker}\nargs = ["--units", "8"]\n')
    return run


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_runs_are_listed_newest_first(cli: Cli, root: Path) -> None:
    saved(root, 9, metrics={"test_accuracy": 0.95123})
    saved(root, 10, name="other", success=False, blame="ps-0", message="gone\nmore")
    saved(root, 8, metrics={"name": "x", "my_loss": 0.25})
    saved(root, 7, metrics={"accuracy": 0.6, "loss": None, "updates": 9}, resumed=True)
    new_run(root / "runs" / "demo", datetime(2026, 11, 22, 11))
    lines = [line.split() for line in cli("runs").out.splitlines()]
    assert lines[1:] == [
        ["demo/20261122-110000", "-", "no", "verdict"],
        ["other/20261122-100000", "9.5", "s", "failed,", "blame", "ps-0:", "gone"],
        ["demo/20261122-090000", "9.5", "s", "test", "accuracy", "0.9512", "success"],
        ["demo/20261122-080000", "9.5", "s", "my", "loss", "0.25", "success"],
        [
            "demo/20261122-070000",
            "9.5",
            "s",
            "loss",
            "nan",
            "or",
            "infinite",
            "resumed,",
            "success",
        ],
    ]
    found = json.loads(cli("runs", "list", "other", "--json").out)
    assert [(one["success"], one["verdict"], one["newest"]) for one in found] == [
        (False, "failed, blame ps-0: gone", True)
    ]
    assert found[0]["args"] == ["--units", "8"]
    assert json.loads(cli("runs", "--json", "other").out) == found
    assert json.loads(cli("runs", "--json").out) == json.loads(cli("runs", "list", "--json").out)
    refused = cli("runs", "--json", "prune")
    assert refused.code == 2 and "leave it out" in refused.out  # it has none
    assert "write it after `cluster-kit runs diff`" in cli("runs", "--json", "diff", "a", "b").out


def test_runs_of_a_cluster_with_different_arguments_are_listed_with_them(
    cli: Cli, root: Path
) -> None:
    saved(root, 9)
    saved(root, 10, name="other")
    assert "args" not in cli("runs").out
    again = saved(root, 11)
    again.manifest.write_text('format = 1\nargs = ["--lr", "1e-2", "a b"]\n')
    ends = [line.split("  ")[-1] for line in cli("runs").out.splitlines()[1:]]
    assert ends == ["success, args: --lr 1e-2 'a b'", "success", "success, args: --units 8"]
    (own := Path.cwd() / "src" / "own.py").parent.mkdir()
    again.manifest.write_text(f'format = 1\nargs = ["--units", "8"]\nprogram = "{own}"\n')
    ends = [line.split("  ")[-1] for line in cli("runs").out.splitlines()[1:]]
    assert ends == ["success, program: src/own.py", "success", "success"]


def test_a_run_that_was_resumed_has_no_verdict_until_it_ends(cli: Cli, root: Path) -> None:
    run = saved(root, 9)
    before = run.outcome.stat().st_mtime
    again = Record("id-2", cluster(), Moment(0.0, 0.0, ""), 100.0, {}, {})
    write_record(run, again)
    os.utime(run.record, (before + 1, before + 1))
    assert cli("runs").out.splitlines()[1].endswith("no verdict")
    run.outcome.write_text(json.dumps({"id": "id-2", "success": True}))
    os.utime(run.outcome, (before + 2, before + 2))
    assert cli("runs").out.splitlines()[1].endswith("success")
    # One that could not be started again has an outcome, but no new record.
    run.outcome.write_text(json.dumps({"id": "id-3", "success": False, "message": "no engine"}))
    os.utime(run.outcome, (before + 2, before + 2))
    assert cli("runs").out.splitlines()[1].endswith("no engine")


def test_a_first_line_that_ends_with_a_colon_is_shown_with_the_next(cli: Cli, root: Path) -> None:
    message = "docker compose up failed (exit 1):\n  no such device\nmore"
    saved(root, 9, success=False, message=message)
    saved(root, 8, success=False, message="ValueError:")
    lines = cli("runs").out.splitlines()
    assert lines[1].endswith("failed: docker compose up failed (exit 1): no such device")
    assert lines[2].endswith("failed: ValueError:")


@pytest.mark.parametrize(("reason", "is_red"), [("failed", True), ("interrupted", False)])
def test_a_run_that_a_user_stopped_is_not_red(
    reason: str, is_red: bool, cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(root, 9, success=False, reason=reason)
    colours = Console(highlight=False, width=100, force_terminal=True, color_system="standard")
    monkeypatch.setattr(runs, "out", colours)
    assert ("\x1b[31m" in cli("runs").out) is is_red


def test_a_long_verdict_shortens_no_other_column(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "the program ended with" + " a long story" * 30
    saved(root, 9, success=False, blame="worker-1", message=message)
    saved(root, 10, name="a-cluster-with-a-long-name", metrics={"test_accuracy": 0.5})
    lines = cli("runs").out.splitlines()
    assert len(lines) == 3 and lines[2].endswith(message), "in a pipe nothing is cut"
    terminal = Console(highlight=False, width=100, force_terminal=True, color_system=None)
    monkeypatch.setattr(runs, "out", terminal)
    lines = cli("runs").out.splitlines()
    assert [len(line) <= 100 for line in lines] == [True] * 3
    assert lines[1].split()[:3] == ["a-cluster-with-a-long-name/20261122-100000", "9.5", "s"]
    assert lines[2].split()[:3] == ["demo/20261122-090000", "9.5", "s"]
    assert lines[2].split()[3].startswith("failed") and lines[2].endswith("…")


@pytest.mark.parametrize(
    ("watched", "state", "request_of", "told"),
    [
        (True, "running", "", "up"),
        (False, "running", "", "up, unwatched: `cluster-kit attach demo`"),
        (False, "exited", "", "ended, not judged: `cluster-kit attach demo`"),
        (False, "exited", "stop", "stopped: `cluster-kit start demo` continues it"),
    ],
)
def test_a_run_with_containers_shows_their_state(
    watched: bool,
    state: str,
    request_of: str,
    told: str,
    cli: Cli,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    machine: Machine,
) -> None:
    run = new_run(root / "runs" / "demo", datetime(2026, 11, 22, 11))
    engine = ClustersUp({"demo": [container("chief-0", state=state, output=str(run.output))]})
    if request_of:
        user_requests.write(run.path, request_of, ["chief-0"], 5.0)
    machine.connects(lambda: engine)
    monkeypatch.setattr("cluster_kit.run.cluster_lock.is_claimed", lambda *_: watched)
    assert cli("runs").out.splitlines()[1].endswith(f"  {told}")
    narrow = Console(highlight=False, width=60, force_terminal=True, color_system=None)
    monkeypatch.setattr(runs, "out", narrow)
    assert cli("runs").out.splitlines()[1].endswith(f"  {told}"), "no command is cut off"


def test_diff_shows_changes_of_the_manifest_and_the_results(cli: Cli, root: Path) -> None:
    saved(root, 8, metrics={"loss": None})
    saved(root, 9, metrics={"loss": 0.5}, timings_s={"total": 10.0})
    saved(root, 10, worker=4, metrics={"loss": 0.25}, timings_s={"total": 20.0})
    diverged = cli("runs", "diff", "demo/20261122-100000", "demo/20261122-080000").out
    assert re.search(r"loss +0.25 +nan or infinite", diverged)
    facts = json.loads(cli("runs", "diff", "demo/20261122-090000", "demo", "--json").out)
    changes = {one["name"]: (one["before"], one["after"], one["ratio"]) for one in facts["changes"]}
    assert changes == {
        "worker tasks": (2, 4, 2), "loss": (0.5, 0.25, 0.5), "total": (10, 20, 2),
    }  # fmt: skip
    assert facts["manifest"][-2:] == ["-worker = 2", "+worker = 4"]
    (root / "src").mkdir()
    assert "no run is in src" in cli("runs", "diff", "demo", "src").err
    output = cli("runs", "diff", "demo/20261122-090000", "runs/demo").out
    assert "metric" in output and "0.50" in output and "+worker = 4" in output


def test_diff_says_that_one_of_the_runs_was_resumed(cli: Cli, root: Path) -> None:
    saved(root, 8, metrics={"step": 360})
    saved(root, 9, metrics={"step": 240}, resumed=True)
    found = cli("runs", "diff", "demo/20261122-080000", "demo/20261122-090000").out
    assert re.search(r"verdict +resumed +no +yes: what it counts is since then", found)


def test_diff_shows_changes_of_the_program(cli: Cli, root: Path) -> None:
    for hour, rate, digits in ((9, 0.1, "0" * 64), (10, 0.5, "f" * 64)):
        run = saved(root, hour)
        files = {"train.py": digits, "same.py": "a" * 64}
        write_record(run, Record("id", cluster(), Moment(0.0, 0.0, ""), 100.0, {}, {}, files))
        run.program.mkdir()
        (run.program / "train.py").write_text(f"rate = {rate}\n")
        run.manifest.write_text("format = 1\n" if hour == 9 else "# with a comment\nformat = 1\n")
    facts = json.loads(cli("runs", "diff", "demo/20261122-090000", "demo", "--json").out)
    assert [(one["what"], one["name"]) for one in facts["changes"]] == [("program", "train.py")]
    assert facts["changes"][0]["after"] == "sha256:ffffffffffff"
    assert facts["program"][-2:] == ["-rate = 0.1", "+rate = 0.5"]
    assert facts["manifest"] == [], "comments are no difference"
    output = cli("runs", "diff", "demo/20261122-090000", "demo").out
    assert "+rate = 0.5" in output and "+++ runs/demo/20261122-100000/program/train.py" in output


def _of_programs(root: Path, *programs: tuple[str, ...]) -> None:
    """Save a run for each of these lists of files, the first at nine o'clock."""
    for hour, names in enumerate(programs, 9):
        run = saved(root, hour)
        files = dict.fromkeys(names, f"{hour:064}")
        write_record(run, Record("id", cluster(), Moment(0.0, 0.0, ""), 100.0, {}, {}, files))
        run.program.mkdir()
        for name in names:
            (run.program / name).write_text(f"x = 1\nhour = {hour}\n")


def test_diff_compares_a_program_with_the_one_in_its_place(cli: Cli, root: Path) -> None:
    _of_programs(root, ("one.py",), ("the_two.py",))
    output = cli("runs", "diff", "demo/20261122-090000", "demo").out
    assert output.endswith(
        "--- runs/demo/20261122-090000/program/one.py\n"
        "+++ runs/demo/20261122-100000/program/the_two.py\n"
        "@@ -1,2 +1,2 @@\n x = 1\n-hour = 9\n+hour = 10\n"
    )


def test_diff_of_two_programs_names_files_that_exist(cli: Cli, root: Path) -> None:
    _of_programs(root, ("one.py",), ("the_two.py", "three.py"))
    output = cli("runs", "diff", "demo/20261122-090000", "demo").out
    heads = [line for line in output.splitlines() if line.startswith(("---", "+++"))]
    assert heads == [
        "--- runs/demo/20261122-090000/program/one.py",
        "+++ /dev/null",
        "--- /dev/null",
        "+++ runs/demo/20261122-100000/program/the_two.py",
        "--- /dev/null",
        "+++ runs/demo/20261122-100000/program/three.py",
    ]
    assert all((root / head[4:]).exists() for head in heads)
    assert [line.split()[1] for line in output.splitlines() if line.startswith("program")] == [
        "one.py",
        "the_two.py",
        "three.py",
    ]


@pytest.mark.parametrize(("version", "told"), [("2.17", ["tensorflow"]), ("", ["kit"])])
def test_diff_of_two_versions_of_tensorflow_does_not_say_that_the_kit_differs(
    version: str, told: list[str], cli: Cli, root: Path
) -> None:
    """Its hash is made from the images' tags, too."""
    for hour, kit, tensorflow in ((9, "aaaaaaaa", ""), (10, "bbbbbbbb", version)):
        of = replace(cluster(), origin=replace(Origin(), kit=kit), tensorflow=tensorflow)
        record = Record("id", of, Moment(0.0, 0.0, ""), 100.0, {}, {}, {})
        write_record(saved(root, hour), record)
    facts = json.loads(cli("runs", "diff", "demo/20261122-090000", "demo", "--json").out)
    assert [one["name"] for one in facts["changes"] if one["what"] == "cluster"] == told


def test_diff_shows_changes_of_the_users_override_file(cli: Cli, root: Path) -> None:
    saved(root, 9)
    saved(root, 10).override.write_text("services: {chief-0: {dns: [10.0.0.2]}}\n")
    output = cli("runs", "diff", "demo/20261122-090000", "demo").out
    assert "\n--- /dev/null\n+++ runs/demo/20261122-100000/override.yaml\n" in output
    assert "\n+services: {chief-0: {dns: [10.0.0.2]}}\n" in output


def test_diff_shows_loss_and_steps_that_only_the_kit_has_read(cli: Cli, root: Path) -> None:
    for hour, loss in ((9, 0.5), (10, 0.25)):
        run = saved(root, hour)
        write_record(run, Record("id", cluster(), Moment(0.0, 0.0, ""), 100.0, {}, {}, {}))
        steps = [{"time": 100.0 + at, "event": "step", "step": at, "loss": loss + 1 - at / 9,
                  "steps_per_s": hour * (1 + at)} for at in range(hour)]  # fmt: skip
        lines = "".join(f"{json.dumps(step)}\n" for step in steps)
        (run.output / "progress").mkdir(exist_ok=True)
        (run.output / "progress" / "chief-0.jsonl").write_text(lines)
        (run.output / "progress" / "worker-0.jsonl").write_text(lines.replace("loss", "accuracy"))
    facts = json.loads(cli("runs", "diff", "demo/20261122-090000", "demo", "--json").out)
    changes = {one["name"]: (one["before"], one["after"]) for one in facts["changes"]}
    assert changes["loss"] == (pytest.approx(0.5 + 1 / 9), pytest.approx(0.25))
    assert changes["step"] == (8, 9)
    assert changes["steps_per_second"] == (9 * 5, 10 * 5.5)


def test_a_word_that_is_no_verb_is_a_cluster_only_if_it_has_runs(cli: Cli, root: Path) -> None:
    saved(root, 9)
    assert cli("runs", "demo").out == cli("runs", "list", "demo").out
    assert "no such verb: show" in cli("runs", "show").err


def test_prune_removes_old_runs_and_keeps_new_ones(cli: Cli, root: Path) -> None:
    for hour in (8, 9, 10, 11):
        saved(root, hour, kept=hour == 9)
    other = saved(root, 7, name="other")
    new_run(root / "runs" / "other", datetime(2026, 11, 22, 8))
    result = cli("runs", "prune", "--keep", "1")
    assert result.code == 0 and result.err.splitlines()[-1].startswith("3 runs, ")
    assert names(root / "runs" / "demo") == ["20261122-090000", "20261122-110000", "latest"], (
        "the containers of the run of 9 o'clock were left"
    )
    assert not other.path.exists()
    assert cli("runs", "prune", "--keep", "1").err == "nothing to remove\n"


def test_runs_that_cannot_be_removed_are_named_and_the_others_removed(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`rmtree` fails as it does for a user who is not root."""
    closed, foreign, plain, _ = (saved(root, hour) for hour in (7, 8, 9, 10))
    (closed.output / "tight" / "tighter").mkdir(parents=True)
    (closed.output / "tight" / "tighter").chmod(0)
    (closed.output / "tight").chmod(0)
    remove = shutil.rmtree

    def rmtree(folder: Path) -> None:
        shut = any(path.stat().st_mode & 0o700 != 0o700 for path in folder.rglob("tight*"))
        if folder == foreign.path or shut:
            raise PermissionError(13, "Permission denied", "tight")
        remove(folder)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    result = cli("runs", "prune", "--keep", "1")
    assert result.code == 3 and not closed.path.exists() and not plain.path.exists()
    assert "\n2 runs, " in result.err
    assert f"removed: {foreign.path} (Permission denied)\n" in result.err
    assert f"can remove their files: `sudo rm -rf {foreign.path}`" in result.err


def test_another_users_run_is_not_removed_in_part(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a directory that a group shares, the tasks' own directories are not the group's."""
    shared, _ = saved(root, 6), saved(root, 7)
    (checkpoints := shared.output / "checkpoints").mkdir()
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) != checkpoints)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    result = cli("runs", "prune", "--keep", "1")
    assert result.code == 3 and f"removed: {shared.path} (Permission denied)" in result.err
    assert shared.outcome.exists() and checkpoints.exists()


def test_a_run_whose_directory_is_mounted_in_containers_is_kept(
    cli: Cli, root: Path, machine: Machine
) -> None:
    used = saved(root, 8)
    saved(root, 9)

    class Engine:
        def clusters(self) -> list[str]:
            return ["demo"]

        def containers(self, name: str) -> list[Any]:
            return [container("ps-0", output=str(used.output))]

    machine.connects(Engine)
    assert cli("runs", "prune", "--keep", "1").err == "nothing to remove\n"


def test_without_runs_the_folder_that_was_searched_is_named(cli: Cli, root: Path) -> None:
    assert cli("runs").err.startswith(f"no run in {root}/runs yet: start one with ")


def test_dry_run_removes_nothing(cli: Cli, root: Path) -> None:
    old = saved(root, 8)
    saved(root, 9)
    output = cli("runs", "prune", "--keep", "1", "--dry-run").err
    assert "would remove runs/demo/20261122-080000" in output
    assert "\n1 run, " in output and output.endswith("would be free\n")
    assert old.path.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("runs", "list", "dem"), "did you mean `demo`?"),
        (("runs", "diff", "demo", "demo/20200101-000000"), "no run `demo/20200101-000000`"),
        (("runs", "diff", "demo", "20261122-090000"), "did you mean `demo/20261122-090000`?"),
        (("runs", "diff", "demo", "lm/20261122-090000"), "did you mean `demo/20261122-090000`?"),
        (("runs", "prune", "--keep", "0"), "invalid value for '--keep'"),
        (("bug-report", "nope"), "no run `nope`"),
        (("bug-report", "demo", "-o", "demo.tar.gz"), "demo.tar.gz exists already"),
        (("bug-report", "demo", "-o", "bug.zip"), "bug.zip does not end with .tar.gz"),
        (("bug-report", "demo", "-o", "no/where.tar.gz"), "cannot be written: No such file"),
    ],
)
def test_invalid_arguments_are_refused(
    words: tuple[str, ...], says: str, cli: Cli, root: Path
) -> None:
    saved(root, 9)
    (root / "demo.tar.gz").write_text("mine")
    result = cli(*words)
    assert result.code in (2, 3) and says in result.err
    assert (root / "demo.tar.gz").read_text() == "mine"


def test_an_archive_has_the_evidence_but_no_results_and_no_secrets(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = saved(root, 9)
    (run.logs / "chief-0.log").write_text("2026 token hunter22\n")
    (run.path / "debug.log").write_text("12:00:00.000 docker: GET /_ping -> 200 (1 ms)\n")
    (run.output / "model").mkdir()
    (run.output / "model" / "weights.bin").write_text("x")
    (run.progress / "chief-0.jsonl").write_text("{}\n")
    known = Known(frozenset({"hunter22"}), are_all=True)
    monkeypatch.setattr("cluster_kit.run.bug_report.known_of", lambda *_: known)
    found = archived(cli, root, monkeypatch)
    assert set(found) == {
        "versions.txt", "outcome.json", "run.json", "manifest.toml", "logs/chief-0.log",
        "debug.log", "output/progress/chief-0.jsonl",
    }  # fmt: skip
    assert found["logs/chief-0.log"] == "2026 token ***\n"


def archived(cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Returns the contents of a run's archive, by name."""
    monkeypatch.setattr("cluster_kit.run.bug_report.versions", lambda *_: ["cluster-kit 1"])
    result = cli("bug-report")
    assert result.code == 0, result.err
    with tarfile.open(root / "runs" / "demo" / "bug-report-demo-20261122-090000.tar.gz") as made:
        assert all(one.isfile() for one in made.getmembers())
        return {name.partition("/")[2]: made.extractfile(name).read().decode()  # type: ignore[union-attr]
                for name in made.getnames()}  # fmt: skip


def test_an_archive_follows_no_link_and_does_not_block_on_a_fifo(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = saved(root, 9)
    (root / "id_rsa").write_text("of the host")
    (run.progress / "chief-0.jsonl").write_text("{}\n")
    (run.progress / "notes.txt").symlink_to(root / "id_rsa")
    (run.output / "stacks").symlink_to(root)
    (run.path / "more.json").symlink_to(root / "id_rsa")
    os.mkfifo(run.output / "result.json")
    found = archived(cli, root, monkeypatch)
    assert "of the host" not in str(found)
    assert {name for name in found if "output" in name} == {"output/progress/chief-0.jsonl"}
    assert "more.json" not in found


def test_a_long_file_is_cut_at_a_line(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = saved(root, 9)
    (run.logs / "chief-0.log").write_text("password hunter22\nlast\n")
    monkeypatch.setattr("cluster_kit.run.bug_report.LARGEST", 9)
    assert archived(cli, root, monkeypatch)["logs/chief-0.log"] == "last\n"


def test_of_very_many_files_only_some_are_archived(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = saved(root, 9)
    monkeypatch.setattr("cluster_kit.run.bug_report.versions", lambda *_: ["cluster-kit 1"])
    monkeypatch.setattr("cluster_kit.run.bug_report.MOST_FILES", 20)
    for index in range(1, 51):
        (run.progress / f"a{index:03}").touch()
    (run.output / "result.json").write_text("{}")
    result = cli("bug-report", "-o", "x.tar.gz")
    assert "left out: 30 more files: " in result.err
    with tarfile.open(root / "x.tar.gz") as made:
        names = [name.partition("/")[2] for name in made.getnames()]
    assert [name for name in names if "output" in name] == [
        *(f"output/progress/a{index:03}" for index in range(1, 21)), "output/result.json"
    ]  # fmt: skip


def test_without_the_values_of_secrets_files_of_tasks_are_left_out(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = saved(root, 9)
    record = json.loads(run.record.read_text())
    record["cluster"]["tasks"][0]["secrets"] = ["MINE"]
    run.record.write_text(json.dumps(record))
    (run.progress / "chief-0.jsonl").write_text("hunter22\n")
    (run.output / "result.json").write_text('"hunter22"')
    monkeypatch.setenv("MINE", "another value than that of the run")
    found = archived(cli, root, monkeypatch)
    assert "hunter22" not in str(found) and not [name for name in found if "output" in name]
    (root / "runs" / "demo" / "bug-report-demo-20261122-090000.tar.gz").unlink()
    result = cli("bug-report")
    assert "left out: 2 files" in result.err and "no secrets" not in result.err


def test_a_failed_archive_leaves_no_file(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(root, 9)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cluster_kit.run.bug_report._write", full)
    monkeypatch.setattr("cluster_kit.run.bug_report.versions", lambda *_: [])
    result = cli("bug-report", "demo", "-o", "x.tar.gz")
    assert result.code == 3 and "No space left" in result.err
    assert not (root / "x.tar.gz").exists()


def test_an_unfinished_run_is_pruned_when_no_container_uses_it(
    cli: Cli, root: Path, machine: Machine
) -> None:
    cut_off = saved(root, 8)
    cut_off.outcome.unlink()
    saved(root, 9)
    assert cli("runs", "prune", "--keep", "1").err == "nothing to remove\n", "no engine tells"

    class Engine:
        def clusters(self) -> list[str]:
            return []

    machine.connects(Engine)
    assert cli("runs", "prune", "--keep", "1").code == 0
    assert not cut_off.path.exists()


@pytest.mark.parametrize("verb", [("report",), ("runs", "diff", "demo")])
def test_a_run_is_found_by_its_name_in_the_list(
    cli: Cli, root: Path, verb: tuple[str, ...]
) -> None:
    saved(root, 9)
    saved(root, 10)
    assert cli(*verb, "demo/20261122-090000").code == 0
    assert cli(*verb, "demo/20261122-110000").code == 2


def test_runs_that_were_copied_without_links_are_found(cli: Cli, root: Path) -> None:
    saved(root, 9)
    saved(root, 10)
    (root / "runs" / "demo" / "latest").unlink()
    assert cli("report", "demo").code == 0
    assert "20261122-100000" in cli("report").err
    assert (root / "runs" / "demo" / "20261122-100000" / "report.html").exists()


def test_diff_shows_another_directory_of_data(cli: Cli, root: Path) -> None:
    for hour, folder in ((8, "/photos"), (9, "/scans"), (10, "/scans")):
        run = saved(root, hour)
        record = json.loads(run.record.read_text())
        record["cluster"]["data"] = "/data"
        record["cluster"]["mounts"] = [{"source": folder, "target": "/data", "read_only": True}]
        run.record.write_text(json.dumps(record))
    same, other = (
        json.loads(cli("runs", "diff", f"demo/20261122-{hour}0000", "demo", "--json").out)
        for hour in ("09", "08")
    )
    assert same["changes"] == []
    assert [(one["name"], one["before"], one["after"]) for one in other["changes"]] == [
        ("data", "/photos", "/scans")
    ]


def test_diff_of_a_run_with_itself_reports_no_difference(cli: Cli, root: Path) -> None:
    saved(root, 9)
    saved(root, 10)
    assert cli("runs", "diff", "demo", "demo/20261122-090000").err == ("they do not differ\n")
    result = cli("runs", "diff", "demo/20261122-090000", "demo/20261122-090000")
    assert result.err == "they do not differ: both are demo/20261122-090000\n"
