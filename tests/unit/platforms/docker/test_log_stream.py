"""Very long lines in a container's log."""

from __future__ import annotations

import pytest

from cluster_kit.platforms.docker.docker_engine import LONGEST_LINE, lines_of
from cluster_kit.platforms.engine import PIECE
from cluster_kit.util.masking import LEFT_OUT, masker


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize(
    "secret", ["hunter2-0123456789-abcdefghi", "\u79d8\u5bc6\u306e\u9375\u3067\u3059"]
)
def test_a_secret_at_the_end_of_a_truncated_line_is_masked(secret: str, end: str) -> None:
    mask = masker({secret})
    for size in range(12, len(secret.encode())):
        data = ("x" * (LONGEST_LINE - size) + secret + "more" + end).encode()
        ((line,),) = lines_of([data])
        assert mask(line) == "x" * (LONGEST_LINE - size) + "***" + LEFT_OUT


def test_the_rest_of_a_long_line_is_left_out() -> None:
    blocks = [b"a\n" + b"x" * LONGEST_LINE, b"xyz", b"xyz\nb\n", b"c"]
    assert [[text[-30:] for text in lines] for lines in lines_of(blocks)] == [
        ["a"], [("x" * 30 + LEFT_OUT)[-30:]], ["b"], ["c"],
    ]  # fmt: skip


def test_docker_puts_a_lines_time_before_each_of_its_pieces() -> None:
    stamp, text = b"2026-11-22T12:00:01.512345678Z ", "x" * PIECE + "y" * PIECE + "secret"
    pieces = [text[at : at + PIECE].encode() for at in range(0, len(text), PIECE)]
    log = b"".join(stamp + piece for piece in pieces) + b"\n" + stamp + b"a\n"
    assert list(lines_of([log])) == [[stamp.decode() + text, stamp.decode() + "a"]]
    ((without_time,),) = lines_of([log.split(b"\n")[0][len(stamp) :]])
    assert without_time.count("2026") == 2, "it is the program's own"
