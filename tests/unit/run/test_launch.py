"""Whole runs with an engine in memory: what is shown, saved and left."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_kit.errors import EngineError, HostError, ManifestError, Problem, UsageError
from cluster_kit.facts import ArpTable
from cluster_kit.run import run_directory, start
from cluster_kit.run.run_directory import read_record
from cluster_kit.run.take_down import take_down
from cluster_kit.workspace import RunDirectory
from tests.fakes.acting import LEADS, SCORES, Life, dies, ends, prints, says
from tests.fakes.stage import NAME, Stage
from tests.unit.metrics.runs import Read


def test_a_successful_run_is_shown_saved_and_removed(stage: Stage) -> None:
    outcome = stage.up()
    assert (outcome.success, outcome.exit_code, outcome.reason) == (True, 0, "finished")
    assert (outcome.blame, outcome.notes, outcome.last_words) == (None, [], "")
    assert outcome.metrics == {"test_accuracy": 0.9, "validation_accuracy": 0.8, "loss": 0.05}
    assert [task.exit_code for task in outcome.tasks] == [0] * 5
    assert [task.rx_bytes for task in outcome.tasks] == [1000] * 5
    assert stage.saved() == json.loads(json.dumps(outcome.as_json()))
    assert "100 training images" in (stage.directory.logs / "chief-0.log").read_text()
    assert {event["action"] for event in stage.events()} == {"create", "start", "die"}
    assert (stage.directory.path / "compose.yaml").read_text().startswith("# cluster-kit")
    told = Read((stage.directory.path / "metrics.prom").read_text())
    assert told("run_success") == 1 and told.all("task_up") == [0] * 5
    assert told("run_metric", metric="test_accuracy") == 0.9
    assert stage.view.phases == [
        "planning",
        "starting 5 containers",
        f"running {NAME} on {stage.subnet}",
        "removing the containers",
    ]
    assert stage.view.states["chief-0"] == ["ready", "training", "ended"]
    assert stage.view.states["evaluator-0"] == ["running", "scoring", "ended"]
    assert stage.is_clean()


def test_a_refused_value_of_the_command_line_is_not_said_to_be_in_the_file(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise ManifestError("compose/demo.toml", [Problem("requirements", "", "no", "hint")])

    monkeypatch.setattr(start, "ensure_image", refuse)
    (tmp_path / "req.txt").write_text("tqdm\n")
    with pytest.raises(ManifestError, match=r"^the command line: 1 problem\n  --requirements: no"):
        stage.up(requirements=str(tmp_path / "req.txt"))
    with pytest.raises(ManifestError, match=r"demo\.toml: 1 problem\n  requirements: no"):
        stage.up()


def test_a_run_keeps_its_debug_log(stage: Stage) -> None:
    stage.up()
    text = (stage.directory.path / "debug.log").read_text(encoding="utf-8")
    assert f"launch: {NAME}: 5 tasks on compose" in text


def test_timings_are_of_this_run(stage: Stage) -> None:
    timings = stage.up().timings_s
    assert list(timings) == [
        "plan", "render", "preflight", "build", "up", "down", "first_step", "train", "total",
    ]  # fmt: skip
    assert (timings["up"], timings["first_step"], timings["train"]) == (0.5, 1.0, 2.0)
    assert 3.5 < timings["total"] < 6.0


def test_lines_of_leader_and_evaluator_are_shown_also_after_a_restart(stage: Stage) -> None:
    scorer = (Life((prints(0.2, "first life"), dies(0.5))), Life((prints(0.1, "second life"),)))
    stage.up({"evaluator-0": scorer})
    stage.engine.finish()
    assert ("chief-0", "100 training images") in stage.view.lines
    assert ("evaluator-0", "first life") in stage.view.lines
    assert "ps-0" not in {task for task, _ in stage.view.lines}


def test_endless_output_is_shown_in_part_and_counted(stage: Stage) -> None:
    flood = [prints(1.0, f"line {number}") for number in range(5000)]
    outcome = stage.up({"chief-0": [Life((*LEADS.steps[:-1], *flood, LEADS.steps[-1]))]})
    assert outcome.success
    lines = [text for task, text in stage.view.lines if task == "chief-0" and "line" in text]
    counted = [int(text.split()[1].replace(",", "")) for text in lines if "left out here" in text]
    assert counted and sum(counted) + len(lines) - len(counted) == 5000
    assert lines[-1] == "line 4999"
    assert (stage.directory.logs / "chief-0.log").read_text().count(" line ") == 5000
    shown = len(stage.view.lines)
    stage.engine.finish()
    assert len(stage.view.lines) == shown, "nothing comes after the outcome"


def test_the_error_of_a_failed_program_is_shown_once(stage: Stage) -> None:
    """By the program, its supervisor or the outcome."""
    words = "ValueError: shapes differ"
    outcome = stage.up({"chief-0": [Life((
        says(0.1, "start", attempt=1), prints(0.9, "step 1"),
        prints(1.0, "Traceback (most recent call last):"),
        prints(1.0, '  File "/program/train.py", line 3, in <module>'),
        prints(1.0, words), ends(2.0, 1, "failed", words),
    ))]})  # fmt: skip
    assert (outcome.message, outcome.blame) == (words, "chief-0")
    assert outcome.last_words.splitlines()[-1] == '  File "/program/train.py", line 3, in <module>'
    assert [text for task, text in stage.view.lines if task == "chief-0"] == ["step 1"]
    assert words in (stage.directory.logs / "chief-0.log").read_text()


def test_the_error_of_a_task_that_is_not_the_leader_is_its_own(stage: Stage) -> None:
    outcome = stage.up({
        "ps-0": [Life((says(0.2, "ready"), ends(1.0, 2, "failed", "port 2222 is taken")))],
        "chief-0": [Life((says(0.1, "start", attempt=1), ends(1.5, 1, "failed", "Unavailable")))],
    }, retries=0)  # fmt: skip
    assert (outcome.blame, outcome.message) == ("ps-0", "port 2222 is taken")


def test_control_sequences_are_not_saved(stage: Stage) -> None:
    wipe = prints(0.8, "\x1b[2J\x1b[31mred\x1b[0m \x9b2Jwords")
    stage.up({"chief-0": [Life((*LEADS.steps[:-1], wipe, LEADS.steps[-1]))]})
    log = (stage.directory.logs / "chief-0.log").read_text()
    assert "red words" in log
    assert not set(log) & {"\x1b", "\x9b"}


def test_a_run_has_the_hashes_of_the_settings_that_its_program_or_arguments_name(
    stage: Stage,
) -> None:
    root = stage.workspace.root / "mine"
    (root / "lib").mkdir(parents=True)
    (root / "train.py").write_text("import lib.read\nNAME = 'a.yaml'\n")
    (root / "lib" / "read.py").write_text("open('b.json'), open('../../out.ini'), open('no.cfg')\n")
    (stage.workspace.root / "out.ini").write_text("x\n")
    for name in ("a.yaml", "lib/b.json", "c.toml", "not_named.yaml"):
        (root / name).write_text(f"{name}\n")
    stage.up(
        program=str(root / "train.py"), extra_args=["--settings=/program/c.toml", "/etc/d.ini"]
    )
    record = read_record(stage.directory)
    named = {"a.yaml", "lib/b.json", "c.toml"}
    assert record and record.program.keys() == {"train.py", "lib/read.py", *named}
    assert record.program["c.toml"] == hashlib.sha256(b"c.toml\n").hexdigest()
    assert not [one for one in stage.directory.program.rglob("*") if one.name in named]


def test_a_run_keeps_its_manifest_and_program(stage: Stage) -> None:
    """With overrides, and the program's modules, however the files change later."""
    root = stage.workspace.root
    (root / "lib").mkdir()
    module = root / "lib" / "layers.py"
    for file in (root / "train.py", module, root / "other.py"):
        file.write_text("from lib import layers\n" if file.name == "train.py" else "WIDTH = 8\n")
    (root / "needs.txt").write_text("pandas>=2\n")
    needs = str(root / "needs.txt")
    stage.up(program=str(root / "train.py"), deadline={"start": 60}, requirements=needs)
    assert stage.directory.requirements.read_text().split() == ["pandas>=2"]
    kept = tomllib.loads(stage.directory.manifest.read_text())
    assert (kept["program"], kept["deadline"]) == (str(root / "train.py"), {"start": 60})
    assert kept["worker"] == 2, "the file's own values stay"
    copies = stage.directory.program
    assert {one.name for one in copies.rglob("*.py")} == {"train.py", "layers.py"}
    assert (copies / "lib" / "layers.py").read_text() == "WIDTH = 8\n"
    record = read_record(stage.directory)
    digest = hashlib.sha256(b"WIDTH = 8\n").hexdigest()
    assert record and record.program["lib/layers.py"] == digest
    module.unlink()
    (root / "train.py").write_text("\n")
    stage.up(program=str(root / "train.py"), resume=True)
    assert not stage.directory.requirements.exists()
    assert [one.name for one in copies.rglob("*.py")] == ["train.py"], "a resumed run has its own"


def test_a_manifest_without_overrides_is_kept_as_it_is_written(stage: Stage) -> None:
    file = stage.workspace.manifests / f"{NAME}.toml"
    file.write_text(f"# mine\n{file.read_text()}")
    stage.up()
    assert stage.directory.manifest.read_text() == file.read_text()
    assert not stage.directory.program.exists()


def test_of_a_large_program_only_hashes_are_kept(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_directory, "MOST_BYTES", 30)
    root = stage.workspace.root
    (root / "train.py").write_text("import large, small\n")
    (root / "large.py").write_text("WIDTH = 8\n" * 9)
    (root / "small.py").write_text("A = 1\n")
    stage.up(program=str(root / "train.py"))
    assert sorted(one.name for one in stage.directory.program.iterdir()) == ["small.py", "train.py"]
    record = read_record(stage.directory)
    assert record and set(record.program) == {"train.py", "large.py", "small.py"}


def test_a_kept_cluster_exists_after_its_end(stage: Stage) -> None:
    assert stage.up(keep=True).success
    assert len(stage.engine.boxes) == 5
    assert stage.saved()["success"]
    assert stage.view.phases[-1].startswith("running")
    assert stage.saved()["kept"]
    with pytest.raises(HostError, match="demo was kept after its end, to be looked at: /") as told:
        stage.up()
    assert "`cluster-kit down demo`" in told.value.hint and "`--name OTHER`" in told.value.hint
    assert len(stage.engine.boxes) == 5
    take_down(stage.host, stage.engine, NAME)
    outcome = stage.up()
    assert outcome.success and not outcome.kept
    assert stage.is_clean()


def test_a_resumed_run_appends_to_its_files_and_shows_nothing_of_the_earlier_run(
    stage: Stage,
) -> None:
    first = stage.up()
    second = stage.up(
        {"chief-0": [Life((says(0.3, "start", attempt=1), ends(2.0, 0, "finished")))]}, resume=True
    )
    assert second.run == first.run
    assert (first.resumed, second.resumed) == (False, True)
    assert f"starting 5 containers to continue demo/{Path(first.run).name}" in stage.view.phases
    assert "first_step" not in second.timings_s, "that step was the first run's"
    assert "test_accuracy" not in second.metrics
    assert stage.view.differences == []
    assert len(stage.events()) == 30
    assert (stage.directory.logs / "ps-0.log").read_text().count("server ready") == 2


def test_there_is_nothing_to_resume_before_the_first_run(stage: Stage) -> None:
    with pytest.raises(UsageError, match="nothing to resume"):
        stage.up(resume=True)
    assert stage.is_clean()


def test_a_bug_in_the_kit_is_reported_as_one_and_cleans_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_seen: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(stage.view, "update", broken)
    with pytest.raises(KeyError):
        stage.up()
    saved = stage.saved()
    assert (saved["reason"], saved["exit_code"]) == ("internal", 1)
    assert saved["message"] == "a bug in the kit: KeyError: 'x'"
    assert "100 training images" not in (stage.directory.logs / "ps-0.log").read_text()
    assert stage.is_clean()


MISREAD = (
    "last_words", "without_message", "known_hint", "on_host", "explained", "outcome_of",
    "mask_outcome", "mask_verdict", "sidecar_notes", "without_log", "save_logs",
)  # fmt: skip
"""The functions of `conclude` that process texts of tasks."""


@pytest.mark.parametrize("function", MISREAD)
def test_text_that_the_kit_cannot_process_does_not_prevent_a_verdict(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError(f"zip() argument 2 is longer {'x' * 1000}")

    monkeypatch.setattr(f"cluster_kit.run.conclude.{function}", broken)
    failed = ends(2.0, 3, "failed", "ValueError: x")
    outcome = stage.up({"chief-0": [Life((says(0.1, "start", attempt=1), failed))]}, retries=0)
    saved = stage.saved()
    assert (saved["success"], saved["exit_code"], saved["blame"]) == (False, 5, "chief-0")
    assert saved["message"] == ("" if function == "mask_verdict" else "ValueError: x")
    assert outcome.exit_code == 5
    notes = [note for note in saved["notes"] if "by a bug in the kit: ValueError" in note]
    assert notes and max(map(len, notes)) < 400
    assert stage.is_clean()


def test_a_bug_in_judging_is_saved_and_cleans_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr("cluster_kit.run.conclude.judge", broken)
    with pytest.raises(KeyError):
        stage.up()
    saved = stage.saved()
    assert (saved["reason"], saved["message"]) == ("internal", "a bug in the kit: KeyError: 'x'")
    assert stage.is_clean()


def test_a_traceback_without_frames_does_not_prevent_a_verdict(stage: Stage) -> None:
    outcome = stage.up({"chief-0": [Life((
        says(0.1, "start", attempt=1), prints(0.9, "Traceback (most recent call last):"),
        prints(1.0, "ValueError: x"), ends(2.0, 1, "failed", "ValueError: x"),
    ))]}, retries=0)  # fmt: skip
    assert (outcome.message, outcome.blame) == ("ValueError: x", "chief-0")
    assert stage.saved()["notes"] == []


def test_other_users_can_read_the_run_when_no_container_is_left(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[bool] = []
    monkeypatch.setattr(
        RunDirectory, "open_to_others", lambda _run: opened.append(not stage.engine.boxes)
    )
    stage.up()
    assert opened == [True]

    def stuck(*_: object) -> None:
        raise EngineError("containers cannot be removed", "start the engine again")

    with monkeypatch.context() as patched:
        patched.setattr(stage.engine, "remove", stuck)
        with pytest.raises(EngineError):
            stage.up()
        patched.setattr(stage.view, "update", stuck)
        with pytest.raises(EngineError):
            stage.up(name="other")
    assert opened == [True], "a container may go on writing"


def test_a_directory_that_the_engine_must_enter_is_opened_before_the_start(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[bool] = []
    monkeypatch.setattr(
        RunDirectory, "open_to_others", lambda _run: opened.append(not stage.engine.boxes)
    )
    monkeypatch.setattr(start, "_can_mount_closed", lambda _prepared: False)
    stage.up()
    assert opened == [True, True], "before the first container, and after the last"


def test_a_full_disk_loses_the_files_of_a_run_but_leaves_no_container(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cluster_kit.run.conclude.save_events", full)
    with pytest.raises(HostError, match=r"the run ended \(finished\), but .*No space left") as told:
        stage.up()
    assert told.value.run == str(stage.directory.path)
    assert stage.saved()["success"]
    assert stage.is_clean()


def test_status_and_the_live_table_agree_at_every_moment(stage: Stage) -> None:
    """Crashes, restarts, a pause and a revived leader."""
    stage.clock.at(1.2, lambda: stage.engine.pause("worker-1", True))
    stage.clock.at(2.2, lambda: stage.engine.pause("worker-1", False))
    stage.up({
        "chief-0": [Life((says(0.1, "start", attempt=1), says(0.9, "ready"), dies(1.5))), LEADS],
        "ps-0": [Life((says(0.2, "ready"), dies(1.0, 1))), Life((says(0.2, "ready"),))],
        "evaluator-0": [Life((*SCORES.steps, dies(3.0, 2))), SCORES],
    })  # fmt: skip
    assert stage.view.updates > 20
    assert stage.view.states["worker-1"] == ["ready", "paused", "ready", "ended"]
    assert stage.view.states["ps-0"][:3] == ["ready", "restarting", "running"]
    assert stage.view.differences == []


def test_impossible_byte_counts_are_unknown(stage: Stage) -> None:
    good = ends(1.0, 0, "finished")
    fields = {**(good.fields or {}), "rx_bytes": -1, "tx_bytes": 1.5}
    outcome = stage.up({"chief-0": [Life((replace(good, fields=fields),))]})
    chief = outcome.tasks[0]
    assert (chief.rx_bytes, chief.tx_bytes) == (None, 1)
    stage.saved()


@pytest.mark.parametrize("root", [True, False])
def test_the_arp_table_has_room_for_all_tasks_or_its_command_is_said(
    stage: Stage, root: bool
) -> None:
    widened = []

    def widen(limit: int) -> None:
        if not root:
            raise PermissionError
        widened.append(limit)

    def has(entries: int) -> None:
        table = ArpTable(entries, 128)
        stage.machine.host = replace(
            stage.machine.host, arp_table=lambda: table, widen_arp_table=widen
        )

    has(entries=10)
    stage.up()
    assert not widened and not stage.view.warnings
    has(entries=120)
    stage.up()
    if root:
        assert widened == [512]
        words = "5 tasks need 132 entries of the kernel's ARP table"
        assert f"{words}: it has room for 512 now, not 128" in stage.view.phases
    else:
        [warning] = stage.view.warnings
        assert "gc_thresh3=512 net.ipv4.neigh.default.gc_thresh2=256" in warning
