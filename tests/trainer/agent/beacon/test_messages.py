"""The lines of the beacon: what is written is what is read."""

from __future__ import annotations

import pytest

from trainer.agent.beacon.messages import (
    LONGEST_LINE,
    Again,
    Beat,
    Done,
    End,
    Failed,
    Hello,
    NoAnswer,
    Report,
    Stacks,
    Stopping,
    decode,
    encode,
)
from trainer.agent.usage import Usage


@pytest.mark.parametrize(
    "message",
    [
        Hello("worker-1", "7f"),
        Done("worker-1"),
        Failed("worker-1", "the shapes\n  do not match"),
        Failed("worker-1", ""),
        Report("gpu-missing", "worker-1", "worker-1 was promised GPU 1, sees none"),
        Stopping(),
        Stacks(),
        Again(),
        NoAnswer("ps-0", 11.5),
        Beat(),
        Beat(Usage(1.25, 4096)),
        Beat(Usage(1.25, 4096, 7, 2.5, 3, 0.5, 0.2, 8_000_000)),
        End(143),
        End(-9),
    ],
)
def test_messages_are_read_as_they_were_written(message):
    line = encode(message)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert decode(line) == message


def test_the_text_of_each_line():
    assert encode(Hello("ps-0", "7f")) == b"hello ps-0 7f\n"
    assert encode(Failed("worker-1", "one\n\ntwo")) == b"failed worker-1 one\x1etwo\n"
    assert encode(Report("cannot-shape", "worker-1", "no ifb")) == (
        b"report cannot-shape worker-1 no ifb\n"
    )
    assert encode(End(5)) == b"end 5\n"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"hello\n",
        b"GET / HTTP/1.1\n",
        b"end\n",
        b"end soon\n",
        b"report x\n",
        b"unanswered ps-0\n",
        b"unanswered ps-0 long\n",
    ],
)
def test_invalid_lines_are_ignored(line):
    assert decode(line) is None


def test_a_message_that_is_too_long_is_cut_and_is_still_one_line():
    line = encode(Failed("worker-1", "x" * 2 * LONGEST_LINE))
    assert len(line) == LONGEST_LINE and line.endswith(b"x\n")
    assert isinstance(decode(line), Failed)
