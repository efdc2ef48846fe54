"""The verdict on a run that no host has watched, as a Slurm job asks for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainer.agent import verdict
from trainer.agent.verdict import Verdict, judge
from trainer.contract import endings


def ended(run: Path, **codes: int) -> None:
    (run / "ended").mkdir(exist_ok=True)
    for name, code in codes.items():
        (run / "ended" / name.replace("_", "-")).write_text(f"{code}\n")


def said(run: Path, task: str, **fields: object) -> None:
    folder = run / "output" / "progress"
    folder.mkdir(parents=True, exist_ok=True)
    line = json.dumps({"time": 1.0, "event": "end", **fields})
    (folder / f"{task}.jsonl").write_text(f'{{"time": 0.5, "event": "start"}}\n{line}\n')


def test_a_leader_that_finished_is_a_success(tmp_path):
    ended(tmp_path, chief_0=0, evaluator_0=143)
    assert judge(tmp_path, "chief-0", stopped=False) == Verdict(0, "finished")
    assert judge(tmp_path, "chief-0", ["evaluator-0"], stopped=True) == Verdict(0, "finished")


@pytest.mark.parametrize("reason", endings.REASONS)
def test_a_leaders_reason_decides(tmp_path, reason):
    ended(tmp_path, chief_0=9)
    said(tmp_path, "chief-0", reason=reason, message='a "b"\n', tasks=["ps-0", "ps-1"])
    blame = None if reason in ("disk-full", "output-lost", "stopped") else "ps-0"
    code = endings.kit_exit_code(reason)
    assert judge(tmp_path, "chief-0", stopped=False) == Verdict(code, reason, blame, 'a "b"\n')


def test_an_unknown_reason_is_a_failure_as_on_the_host(tmp_path):
    ended(tmp_path, chief_0=9)
    said(tmp_path, "chief-0", reason="an unknown word", message="no", tasks=[])
    assert judge(tmp_path, "chief-0", stopped=False) == Verdict(5, "failed", "chief-0", "no")


def test_an_evaluator_that_failed_or_has_not_ended_fails_a_good_training(tmp_path):
    ended(tmp_path, chief_0=0)
    late = judge(tmp_path, "chief-0", ["evaluator-0"], stopped=False)
    assert (late.exit_code, late.reason, late.blame) == (6, "evaluator-grace", "evaluator-0")
    assert "evaluator-0 left no word, and ended with exit code unknown" in late.message
    ended(tmp_path, evaluator_0=6)
    said(tmp_path, "evaluator-0", reason="failed", message="no checkpoint", tasks=[])
    found = judge(tmp_path, "chief-0", ["evaluator-0"], stopped=False)
    assert found == Verdict(5, "failed", "evaluator-0", "no checkpoint")


def test_a_leader_without_an_end_was_stopped_or_failed(tmp_path):
    ended(tmp_path, chief_0=137)
    message = "chief-0 left no word, and ended with exit code 137"
    assert judge(tmp_path, "chief-0", stopped=True) == Verdict(7, "stopped", None, message)
    assert judge(tmp_path, "chief-0", stopped=False) == Verdict(5, "failed", "chief-0", message)
    ended(tmp_path, chief_0=143)
    assert judge(tmp_path, "chief-0", stopped=False).reason == "stopped"
    assert judge(tmp_path, "worker-0", stopped=False).message.endswith("exit code unknown")


@pytest.mark.parametrize("line", [
    '{"event": "end", "reason": ["stall"], "message": 7, "tasks": "ps-0"}', '["end"]', "{", "",
    '{"event": "step", "reason": "stall", "tasks": ["ps-0"]}',
])  # fmt: skip
def test_lines_that_are_not_an_end_are_ignored(tmp_path, line):
    ended(tmp_path, chief_0=1)
    said(tmp_path, "chief-0")
    (tmp_path / "output" / "progress" / "chief-0.jsonl").write_text(line + "\n")
    found = judge(tmp_path, "chief-0", stopped=False)
    assert (found.reason, found.blame) == ("failed", "chief-0")
    assert "left no word" in found.message


def test_the_verdict_is_written_as_the_kit_reads_it_and_printed(tmp_path, capsys):
    ended(tmp_path, chief_0=3)
    said(tmp_path, "chief-0", reason="stall", message="a\x1b[31m", tasks=[])
    options = ["--cluster", "demo", "--id", "slurm-7", "--leader", "chief-0", "--seconds", "12"]
    assert verdict.main([str(tmp_path), *options, "--shown", "/shared/run"]) == 6
    facts = json.loads((tmp_path / "outcome.json").read_text())
    assert facts["timings_s"] == {"total": 12} and facts["run"] == "/shared/run"
    assert (facts["success"], facts["exit_code"], facts["reason"]) == (False, 6, "stall")
    printed = capsys.readouterr().out
    assert 'failed: reason "stall", blame "chief-0": "a\\u001b[31m"' in printed
    assert "exit code 6; everything is in /shared/run" in printed


HALF = "2 of 4 workers ended well (success = {worker = 0.5})"


def run_verdict(run: Path, *options: str) -> dict:
    """outcome.json of this run."""
    common = ("--cluster", "demo", "--id", "slurm-1", "--leader", "worker-0")
    code = verdict.main([str(run), *common, *options])
    facts = json.loads((run / "outcome.json").read_text())
    assert facts["exit_code"] == code
    return facts


def test_the_sentence_about_who_decided_is_printed(tmp_path, capsys):
    ended(tmp_path, worker_0=0)
    said(tmp_path, "worker-0", exit_code=0, reason="finished", decided=HALF)
    assert run_verdict(tmp_path)["decided"] == HALF
    assert capsys.readouterr().out.startswith(f'success in 0 s: "{HALF}"; everything is in ')
    ended(tmp_path, worker_0=1)
    decided = "worker-1 ended with 3, which is permanent"
    said(tmp_path, "worker-0", reason="failed", message="no", tasks=["worker-1"], decided=decided)
    facts = run_verdict(tmp_path)
    assert (facts["blame"], facts["decided"]) == ("worker-1", decided)
    assert f'failed: "{decided}": reason "failed"' in capsys.readouterr().out


def test_an_evaluator_that_does_not_count_fails_no_run(tmp_path):
    ended(tmp_path, worker_0=0, evaluator_0=1)
    evaluator = ("--evaluator", "evaluator-0")
    assert not run_verdict(tmp_path, *evaluator)["success"]
    assert run_verdict(tmp_path, *evaluator, "--without", "evaluator-0")["success"]


def test_an_evaluator_that_stayed_after_its_program_had_failed_has_failed(tmp_path):
    ended(tmp_path, worker_0=0, evaluator_0=0)
    said(tmp_path, "evaluator-0", exit_code=3, reason="failed", message="E", stays=True)
    facts = run_verdict(tmp_path, "--evaluator", "evaluator-0")
    assert (facts["success"], facts["blame"]) == (False, "evaluator-0")
