"""Which lines of a task's log are shown while it runs: a flood is counted, and no line is shown
twice."""

from __future__ import annotations

import pytest

from cluster_kit.observe.logs import HOLD_S, LAST, MOST, MOST_HELD, WINDOW_S, Repeats, Shown
from tests.fakes.clock import Clock


class Screen:
    """Records the lines of `chief-0` that are shown."""

    def __init__(self, clock: Clock, since: float | None = None) -> None:
        self.lines: list[str] = []
        self.shown = Shown(clock, "chief-0", lambda _task, text: self.lines.append(text), since)

    def takes(self, *texts: str, first: int = 1) -> None:
        for number, text in enumerate(texts, first):
            self.shown.take(number, text)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def said(count: int, first: int = 1) -> list[str]:
    return [f"line {number}" for number in range(first, first + count)]


def log(texts: list[str]) -> str:
    """Returns a log as the engine returns it: one line per second from 10:00:00 on."""
    stamps = (f"2026-03-01T10:{i // 60:02}:{i % 60:02}.123456789Z" for i in range(len(texts)))
    return "".join(f"{stamp} {text}\n" for stamp, text in zip(stamps, texts, strict=True))


def test_lines_are_shown_as_they_arrive(clock: Clock) -> None:
    screen = Screen(clock)
    screen.takes("a", "  ", "", "b")
    assert screen.lines == ["a", "b"]


def test_of_a_flood_the_last_lines_are_shown_and_the_others_counted(clock: Clock) -> None:
    screen = Screen(clock)
    screen.takes(*said(100_000))
    assert screen.lines == said(MOST)
    screen.shown.finish(())
    left_out = 100_000 - MOST - LAST
    assert screen.lines[MOST] == f"… {left_out:,} lines left out here, all in logs/chief-0.log"
    assert screen.lines[MOST + 1 :] == said(LAST, 100_000 - LAST + 1)


def test_a_program_is_shown_again_after_a_flood_without_waiting_for_a_line(clock: Clock) -> None:
    screen = Screen(clock)
    screen.takes(*said(MOST + LAST + 1))
    screen.shown.settle()
    assert len(screen.lines) == MOST
    clock.pass_by(WINDOW_S)
    screen.shown.settle()
    assert screen.lines[MOST] == "… 1 line left out here, all in logs/chief-0.log"
    assert screen.lines[MOST + 1 :] == said(LAST, MOST + 2)
    screen.takes("on we go", first=MOST + LAST + 2)
    assert screen.lines[-1] == "on we go"


def test_a_few_lines_above_the_limit_are_all_shown(clock: Clock) -> None:
    screen = Screen(clock)
    screen.takes(*said(MOST + LAST))
    screen.shown.finish(())
    assert screen.lines == said(MOST + LAST)


def test_lines_that_repeat_after_a_restart_are_shown_once(clock: Clock) -> None:
    screen = Screen(clock)
    screen.takes("first life")
    screen.takes("first life", "second life")
    assert screen.lines == ["first life", "second life"]


def test_the_end_shows_lines_that_have_not_arrived_and_nothing_later(clock: Clock) -> None:
    screen = Screen(clock)
    screen.takes("a", "", "b")
    screen.shown.finish(log(["a", "", "b", "c", "d"]).split("\n"))
    screen.takes("c", "d", first=4)
    screen.shown.settle()
    screen.shown.finish(log(["a", "", "b", "c", "d"]).split("\n"))
    assert screen.lines == ["a", "b", "c", "d"]


def test_the_end_counts_lines_of_a_flood_that_have_not_arrived(clock: Clock) -> None:
    screen = Screen(clock)
    screen.takes(*said(5))
    screen.shown.finish(log(said(3000)).split("\n"))
    told = [line for line in screen.lines if "left out" in line]
    assert told == [f"… {3000 - MOST - LAST:,} lines left out here, all in logs/chief-0.log"]
    assert len(screen.lines) - 1 + 3000 - MOST - LAST == 3000
    assert screen.lines[-1] == "line 3000"


def test_lines_from_before_the_start_are_neither_shown_nor_counted(clock: Clock) -> None:
    screen = Screen(clock, since=1772359203.0)  # 10:00:03
    screen.shown.finish(log(said(6)).split("\n"))
    assert screen.lines == ["line 4", "line 5", "line 6"]


TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "/program/train.py", line 3, in <module>',
    '  File "/opt/deep.py", line 9, in f',
    "ValueError: shapes differ",
    "  (3,) and (4,)",
]
TOLD = '  File "/program/train.py", line 3, in <module>\nValueError: shapes differ\n  (3,) and (4,)'


@pytest.mark.parametrize("arrived", [0, 2, 5])
def test_an_error_that_the_outcome_reports_is_not_shown_before(clock: Clock, arrived: int) -> None:
    screen = Screen(clock)
    screen.takes("step 1", *TRACEBACK[:arrived])
    screen.shown.settle()
    screen.shown.finish(log(["step 1", *TRACEBACK, "goodbye"]).split("\n"), TOLD)
    assert screen.lines == ["step 1", "goodbye"]


def test_an_error_that_the_outcome_does_not_report_is_shown(clock: Clock) -> None:
    screen = Screen(clock)
    screen.takes("step 1", *TRACEBACK)
    assert screen.lines == ["step 1"]
    screen.shown.finish(log(["step 1", *TRACEBACK]).split("\n"), "ps-0 ended with exit code 137")
    assert screen.lines == ["step 1", *TRACEBACK]


def test_an_error_that_the_program_survives_is_shown_soon(clock: Clock) -> None:
    screen = Screen(clock)
    screen.takes(*TRACEBACK, "and on we go")
    clock.pass_by(HOLD_S - 0.1)
    screen.shown.settle()
    assert screen.lines == []
    clock.pass_by(0.2)
    screen.shown.settle()
    assert screen.lines == [*TRACEBACK, "and on we go"]
    screen.takes("step 2", first=7)
    assert screen.lines[-1] == "step 2"


def test_a_flood_after_an_error_releases_it(clock: Clock) -> None:
    screen = Screen(clock)
    screen.takes(*TRACEBACK, *said(MOST_HELD))
    assert screen.lines[: len(TRACEBACK)] == TRACEBACK


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("error: /data/x: no file", "/data/x: no file"),
        ("chief-0: the program ended with exit code 3", "the program ended with exit code 3"),
        (
            "train.py: error: unrecognized arguments: --x",
            "train.py: error: unrecognized arguments: --x",
        ),
    ],
)
def test_a_message_without_a_traceback_is_shown_only_once(
    clock: Clock, line: str, told: str
) -> None:
    screen = Screen(clock)
    screen.takes("reading", line)
    screen.shown.finish((), told)
    assert screen.lines == ["reading"]


def test_messages_of_a_supervisor_during_the_run_are_shown_at_once(clock: Clock) -> None:
    screen = Screen(clock)
    screen.takes("chief-0: worker-1 is a straggler: 2.1 steps/s", "chief-0: training waits")
    assert len(screen.lines) == 2


def test_output_around_an_error_is_shown_or_counted(clock: Clock) -> None:
    """Lines of stdout may arrive after later lines of stderr."""
    screen = Screen(clock)
    lines = ["error: no class folders", *said(350)]
    screen.shown.finish(log(lines).split("\n"), "no class folders\n" + "\n".join(said(10, 341)))
    left_out = [line for line in screen.lines if "left out" in line]
    assert left_out == [f"… {340 - MOST - LAST} lines left out here, all in logs/chief-0.log"]
    assert len(screen.lines) - 1 + 340 - MOST - LAST == 340
    within = Screen(clock)
    mixed = [*TRACEBACK[:2], *said(50), *TRACEBACK[2:]]
    within.shown.finish(log(mixed).split("\n"), TOLD)
    assert within.lines == said(50)


def test_the_lines_of_a_graph_error_are_not_shown_one_by_one(clock: Clock) -> None:
    inside = ["Detected at node 'a' defined at (most recent call last):", "Node: 'a'"]
    screen = Screen(clock)
    screen.shown.finish(log([*TRACEBACK[:3], *inside, *TRACEBACK[3:]]).split("\n"), TOLD)
    assert screen.lines == []


STACK = """ERROR:tensorflow: /job:worker/task:{0} encountered an error: Graph execution error:
Detected at node CheckNumerics defined at (most recent call last):
  File "/opt/trainer/trainer/agent/injected/runner.py", line 52, in main
    run(program)
  File "/program/train.py", line {1}, in step
    check(loss)
loss is NaN : Tensor had NaN values
\t [[{{{{node CheckNumerics}}}}]]
Additional GRPC error information from remote target /job:worker/task:{0} while calling Enqueue:
:UNKNOWN:Error received from peer  {{grpc_status:3}} [Op:__inference_step_16]"""


def test_an_error_of_every_worker_is_shown_once(clock: Clock) -> None:
    """Frames in the kit and in the image's packages, and gRPC's additions, are never shown."""
    screen = Screen(clock)
    first, again = STACK.format(1, 10).splitlines(), STACK.format(0, 10).splitlines()
    screen.takes(*first, *again, *again, "step 1: loss nan")
    shown = [*first[:2], *first[4:-2]]
    assert screen.lines == [*shown, "step 1: loss nan"]
    screen.takes(*STACK.format(1, 12).splitlines(), first=1 + 3 * len(first) + 1)
    screen.shown.finish(())
    assert screen.lines[len(shown) + 1] == '  File "/program/train.py", line 12, in step'
    left_out = 4 + 2 * len(first) + len(first) - 1
    told = f"… {left_out} lines of errors left out, all in logs/chief-0.log"
    assert screen.lines[-1] == told


LOST = "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.101:2222"
WORKER_LOST = (
    f"ERROR:tensorflow:Worker /job:worker/replica:0/task:1 failed with UnavailableError():{LOST}",
    "Additional GRPC error information from remote target /job:worker/task:1 while calling X:",
    f':UNKNOWN:Error received from peer  {{grpc_message:"{LOST}", grpc_status:14}} [Op:__train_2]',
)


def test_a_lost_worker_is_one_line(clock: Clock) -> None:
    screen = Screen(clock)
    screen.takes(*WORKER_LOST, *WORKER_LOST, "step 40")
    assert screen.lines == [WORKER_LOST[0], "step 40"]
    clock.pass_by(60.0)
    screen.shown.finish(log([*WORKER_LOST, *WORKER_LOST, "step 40", *WORKER_LOST]).split("\n"))
    assert screen.lines[2:] == ["… 7 lines of errors left out, all in logs/chief-0.log"]


def test_error_lines_that_are_counted_later_are_said_to_be_old(clock: Clock) -> None:
    """The message is rare, and then stands between lines of a program that trains well."""
    screen = Screen(clock)
    screen.takes(*WORKER_LOST)
    clock.pass_by(2.0)
    screen.takes(*WORKER_LOST, first=4)
    clock.pass_by(28.0)
    screen.takes("step 40", first=7)
    clock.pass_by(2.0)
    screen.takes("step 41", first=8)
    of_errors = "lines of errors left out"
    assert screen.lines[1:] == [
        f"… 2 {of_errors}, all in logs/chief-0.log",
        "step 40",
        f"… 2 {of_errors}, the last 30 s ago, all in logs/chief-0.log",
        "step 41",
    ]


def test_of_a_long_tensorflow_error_the_beginning_is_shown(clock: Clock) -> None:
    """The errors of `enable_check_numerics` have a stack of a hundred lines, once for each
    worker."""
    stack = [f"    + .../layer.py (L{i}) call\n  -> |" for i in range(40)]
    found = "\n".join(["!!! Detected Infinity or NaN", "  dtype: float32", *stack]).splitlines()
    screen = Screen(clock)
    first = "ERROR:tensorflow: /job:worker/task:1 encountered an error: Graph execution error:"
    second = "ERROR:tensorflow:Start cancelling closures due to error: Graph execution error:"
    screen.takes(first, *found, "  [[{{node a}}]]", *found, second, *found, "saved", " 1/9 [>..]")
    screen.shown.finish(())
    assert screen.lines[:2] == [first, found[0]] and second in screen.lines
    assert screen.lines[-3:-1] == ["saved", " 1/9 [>..]"]
    assert len(screen.lines) <= 15 and "lines of errors left out" in screen.lines[-1]


def test_a_matrix_that_a_program_prints_is_not_an_error(clock: Clock) -> None:
    matrix = ["[[[1.]", *(f"  [{i % 2}.]" for i in range(9)), " [[1.]", *["  [1.]"] * 9, "  [1.]]]"]
    screen = Screen(clock)
    screen.takes(*matrix)
    screen.shown.finish(())
    assert screen.lines == matrix


def test_later_indented_lines_are_the_programs(clock: Clock) -> None:
    screen = Screen(clock)
    screen.takes("ERROR:tensorflow:gone")
    steps = [f"  {step}/50 [==>...]" for step in range(50)]
    clock.pass_by(2.0)
    screen.takes(*steps, first=2)
    assert screen.lines == ["ERROR:tensorflow:gone", *steps]


def test_repeated_lines_of_the_program_are_all_shown(clock: Clock) -> None:
    mine = ["E is 5", "loss is NaN", "  indented", "saved", "INFO: done", "File x", "1 root"] * 3
    screen = Screen(clock)
    screen.takes(*mine, "INFO:tensorflow:loss = 1, step = 1", "INFO:tensorflow:loss = 1, step = 2")
    assert len(screen.lines) == len(mine) + 2
    after_error = ["ERROR:tensorflow:gone", "saved", "ERROR:tensorflow:gone", "saved"]
    screen.takes(*after_error, first=100)
    assert screen.lines[-3:] == ["ERROR:tensorflow:gone", "saved", "saved"]


def test_a_line_that_tensorflow_logs_twice_is_shown_once(clock: Clock) -> None:
    """Its own handler and the root's log it, as soon as a program has set up `logging`."""
    screen = Screen(clock)
    line = "WARNING:tensorflow:Using the default strategy"
    screen.takes(line, line, "step 1", "step 1")
    screen.shown.finish(())
    assert screen.lines == [line, "step 1", "step 1"]


ABSL = "I1124 19:59:43.838015 140600459059904 "


@pytest.mark.parametrize("header", [f"{ABSL}strategy.py:603] ", "2026-11-24 20:08:15,796 tf "])
def test_a_line_that_tensorflow_logs_a_second_time_in_another_form_is_shown_once(
    clock: Clock, header: str
) -> None:
    """By absl's handler in `absl.app`, or in the format that a program has set up."""
    screen = Screen(clock)
    line, message = "INFO:tensorflow:Check health", "Check health"
    mine = [f"{ABSL}train.py:19] step 0", f"epoch 3: {message}", message]
    screen.takes(line, f"{header}{message}", line, f"{header}{message}", *mine)
    screen.shown.finish(())
    assert screen.lines == [line, *mine]


def test_the_marks_of_a_frame_that_is_left_out_are_left_out() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/program/train.py", line 27, in <module>',
        "    loss = step(it)",
        "           ^^^^^^^^",
        '  File "/opt/venv/lib/python3.11/site-packages/tensorflow/execute.py", line 53, in run',
        "    tensors = pywrap_tfe.TFE_Py_Execute(ctx._handle, device_name, op_name,",
        "  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        "ValueError: no",
    ]
    repeats = Repeats()
    shown = [line for line in lines if not repeats.leaves_out(line, 0.0)]
    assert shown == [*lines[:4], lines[-1]]
