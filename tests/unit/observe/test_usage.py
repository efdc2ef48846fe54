"""Resource use of tasks: rates between lines, means, peaks, and invalid lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cluster_kit.contract import events
from cluster_kit.observe.progress import USAGE, Entry, ProgressReader, fields_of, sizes
from cluster_kit.observe.reconcile import from_containers
from cluster_kit.observe.state import RunState
from cluster_kit.observe.usage import Usage, of_samples, sample_of
from cluster_kit.platforms.engine import Event
from tests.entries import as_entry
from tests.make import cluster
from tests.unit.stories import Story, container

LINE = '{"time": 5, "event": "usage", "cpu_s": 1, "memory": 2, "rx_bytes": 3, "tx_bytes": 4}\n'


def entry(time: float, cpu_s: float = 0, memory: int = 1, rx: int = 0, **more: object) -> Entry:
    counts = {"cpu_s": cpu_s, "memory": memory, "rx_bytes": rx, "tx_bytes": 0}
    return as_entry("ps-0", time, "usage", {**counts, **more})


def use_of(*entries: Entry):
    return of_samples(sample for one in entries if (sample := sample_of(one)))["ps-0"]


def test_a_rate_needs_two_lines() -> None:
    use = use_of(entry(1, cpu_s=1, memory=100))
    assert use.now == Usage(100) and use.cpus_mean is None and use.memory_mean == 100
    use = use_of(entry(1, cpu_s=1), entry(3, cpu_s=2, rx=500))
    assert (use.now.cpus, use.now.rx_bps, use.now.tx_bps) == (0.5, 250, 0)


def test_a_restarted_task_counts_from_zero() -> None:
    use = use_of(entry(1, cpu_s=10), entry(2, cpu_s=12), entry(3, cpu_s=0.5), entry(4, cpu_s=1.5))
    assert use.cpus_mean == 1.5 and use.cpus_peak == 2 and use.now.cpus == 1
    assert use_of(entry(1, cpu_s=10), entry(2, cpu_s=0.5)).now.cpus is None


def test_time_without_a_running_task_is_not_counted() -> None:
    use = use_of(entry(1), entry(2, cpu_s=1), entry(200, cpu_s=1), entry(201, cpu_s=2))
    assert use.cpus_mean == 1 and use.seconds == 2


def test_two_lines_at_the_same_time_give_no_rate() -> None:
    use = use_of(entry(1), entry(2, cpu_s=1), entry(2.01, cpu_s=1.5, memory=7))
    assert use.now == Usage(7, cpus=1, rx_bps=0, tx_bps=0) and use.cpus_peak == 1
    assert use_of(entry(2), entry(1, cpu_s=5)).cpus_peak is None


def test_gpus_are_averaged_and_their_memory_summed() -> None:
    two = [{"busy": 0.5, "memory": 10}, {"busy": 1.0, "memory": 20}]
    slices = [{"busy": None, "memory": 5}]
    use = use_of(entry(1, gpus=two), entry(2, gpus=two))
    assert (use.now.gpu_busy, use.gpu_busy_mean, use.gpu_memory_peak) == (0.75, 0.75, 30)
    use = use_of(entry(1, gpus=slices), entry(2, gpus=slices))
    assert (use.gpu_busy_mean, use.gpu_memory_peak) == (None, 5)


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"cpu_s": "1"}, {"memory": None}, {"rx_bytes": -1}, {"tx_bytes": float("nan")},
        {"cpu_s": True}, {"memory": 1e300},
    ],
)  # fmt: skip
def test_an_invalid_line_is_no_sample(fields: dict[str, object]) -> None:
    good = {"cpu_s": 1, "memory": 1, "rx_bytes": 1, "tx_bytes": 1}
    assert sample_of(as_entry("ps-0", 1, "usage", good))
    assert sample_of(as_entry("ps-0", 1, "usage", {**good, **fields} if fields else {})) is None
    assert sample_of(as_entry("ps-0", 1, "step", good)) is None


def test_invalid_parts_of_a_line_are_left_out() -> None:
    sample = sample_of(entry(1, sent_to={"ps-1": 5, "x": "y"}, gpus=["?", {"busy": "high"}]))
    assert sample and sample.sent_to == {"ps-1": 5}
    assert (sample.gpu_busy, sample.gpu_memory) == (None, None)
    assert sample_of(entry(1, sent_to=[], gpus=7)) is not None


def test_a_task_that_has_ended_uses_nothing() -> None:
    story = Story.of().uses(1, "ps-0", 1, 10, 0).uses(2, "ps-0", 2, 20, 0)
    assert story.seen.tasks["ps-0"].usage == Usage(20, cpus=1, rx_bps=0, tx_bps=0)
    ended = story.dies(3, "ps-0", 0)
    assert ended.seen.tasks["ps-0"].usage is None
    assert ended.uses(2.5, "ps-0", 3, 20, 0).seen.tasks["ps-0"].usage is None, "read late"
    assert ended.seen.uses["ps-0"].memory_peak == 20


def test_a_file_of_an_unknown_task_is_ignored() -> None:
    seen = RunState.of(cluster()).with_event(Event(1.0, "start", "ps-0", None))
    assert seen.with_usage(as_entry("stranger-0", 2, "usage", fields_of(entry(2).event))) is seen


def test_status_shows_the_use_of_running_tasks() -> None:
    lines = [entry(1, cpu_s=1), entry(2, cpu_s=2)]
    running, ended = container("ps-0", state="running"), container("ps-0", state="exited")
    assert from_containers([running], [], lines)[0].usage == Usage(1, cpus=1, rx_bps=0, tx_bps=0)
    assert from_containers([ended], [], lines)[0].usage is None


@pytest.mark.parametrize(
    ("counted", "speed", "later", "shown"),
    [
        (True, 26.0, 50, 26.0),
        (True, 26.0, 100, 0.0),
        (True, 0.02, 100, 0.02),
        (True, 0.02, 300, 0.0),
        (None, 26.0, 100, 26.0),
    ],
)
def test_a_job_that_hangs_has_no_speed(
    counted: bool | None, speed: float, later: float, shown: float
) -> None:
    """A program that reports steps itself may do so at long intervals."""
    step = {"step": 120, "steps_per_s": speed, "counted": counted}
    story = Story.of().start(0, "chief-0").says(1, "chief-0", "step", **step)
    assert story.uses(later, "chief-0", 1, 1, 0).seen.tasks["chief-0"].shown_speed == shown
    running, steps = container("chief-0", state="running"), [as_entry("chief-0", 1, "step", step)]
    usage = [replace(entry(later), task="chief-0")]
    assert from_containers([running], steps, usage)[0].shown_speed == shown


@pytest.mark.parametrize(("later", "shown"), [(7.5, 26.0), (9, 0.0)])
def test_a_program_that_reported_steps_and_stands_has_no_speed(later: float, shown: float) -> None:
    steps = [as_entry("chief-0", at, "step", {"step": at, "steps_per_s": 26}) for at in (1, 2, 3)]
    story = Story.of().start(0, "chief-0")
    for step in steps:
        story = Story(story.seen.with_entry(step))
    assert story.uses(later, "chief-0", 1, 1, 0).seen.tasks["chief-0"].shown_speed == shown
    usage = [replace(entry(later), task="chief-0")]
    running = container("chief-0", state="running")
    assert from_containers([running], steps, usage)[0].shown_speed == shown


def test_a_frozen_task_uses_only_memory() -> None:
    story = Story.of().uses(1, "ps-0", 1, 5, 0).uses(2, "ps-0", 2, 5, 9)
    running = story.seen.tasks["ps-0"]
    assert running.shown_usage == running.usage == Usage(5, cpus=1, rx_bps=0, tx_bps=9)
    frozen = Story(story.seen.with_event(Event(3, "pause", "ps-0", None))).uses(
        2.9, "ps-0", 3, 5, 9
    )
    assert frozen.seen.tasks["ps-0"].shown_usage == Usage(5)


def test_usage_files_are_next_to_progress_files_and_read_separately(tmp_path: Path) -> None:
    folder = tmp_path / "progress"
    folder.mkdir()
    (folder / "ps-0.usage").write_text(LINE)
    (folder / "ps-0.jsonl").write_text('{"time": 1, "event": "ready"}\n')
    assert [one.event for one in ProgressReader(tmp_path).poll()] == [events.Ready()]
    (line,) = ProgressReader(tmp_path, suffix=USAGE).poll()
    assert (line.task, line.event.memory) == ("ps-0", 2)
    assert sizes(tmp_path) == {"ps-0.usage": len(LINE), "ps-0.jsonl": 30}
    assert ProgressReader(tmp_path, sizes=sizes(tmp_path), suffix=USAGE).poll() == []
