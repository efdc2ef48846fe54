"""All pages share one reader, which reads only while a page is open."""

from __future__ import annotations

import threading
from itertools import islice

import pytest

from cluster_kit.serve import site
from cluster_kit.serve.site import FASTEST_S, SLOWEST_S, Channel, next_pause


class Counts:
    """A source that has something new at each look."""

    def __init__(self) -> None:
        self.looks = 0
        self.looked = threading.Event()

    def look(self, *, last: bool = False) -> bytes:
        self.looks += 1
        self.looked.set()
        return f"look {self.looks}".encode()

    def close(self) -> None:
        pass

    def whole(self) -> bytes:
        return f"whole {self.looks}".encode()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "FASTEST_S", 0.001)
    monkeypatch.setattr(site, "PULSE_S", 0.005)


def test_two_pages_share_one_reader(quick: None) -> None:
    one = Channel(source := Counts())
    assert source.looks == 0, "nobody looks"
    first, second = one.listen(), one.listen()
    assert next(first) == b"whole 1"
    begun = next(second)
    assert begun.startswith(b"whole")
    told = [piece for piece in islice(first, 50) if piece.startswith(b"look")]
    also = [piece for piece in islice(second, 10) if piece.startswith(b"look")]
    assert set(also) <= set(told) or also[-1] > told[-1]
    first.close(), second.close()


def test_nothing_is_read_when_the_last_page_is_closed(quick: None) -> None:
    one = Channel(source := Counts())
    page = one.listen()
    list(islice(page, 3))
    page.close()
    assert one.pages == 0
    for thread in threading.enumerate():
        if thread.name.endswith("(_read)"):
            thread.join(2)
    before = source.looks
    source.looked.clear()
    assert not source.looked.wait(0.02) and source.looks == before
    again = one.listen()
    assert next(again) == f"whole {before + 1}".encode(), "what has come meanwhile is in it"
    again.close()


def test_a_page_that_is_behind_gets_everything_again() -> None:
    one = Channel(source := Counts())
    page = one.listen()
    next(page)
    for _ in range(site.MOST_WAITING + 1):
        one._tell(source.look())
    assert next(page).startswith(b"whole")
    page.close()


def test_all_pages_are_informed_of_the_end_and_close() -> None:
    one = Channel(Counts())
    page = one.listen()
    next(page)
    one.close(b", the end")
    rest = list(page)
    assert rest[-1].endswith(b", the end") and one.pages == 0


def test_a_pulse_during_the_last_reading_ends_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Counts):
        begun, may_end = threading.Event(), threading.Event()

        def look(self, *, last: bool = False) -> bytes:
            if last:
                self.begun.set()
                assert self.may_end.wait(300)
            return super().look()

    one = Channel(source := Slow())
    page = one.listen()
    next(page)
    closing = threading.Thread(target=one.close, args=(b", the end",))
    closing.start()
    assert source.begun.wait(300)
    monkeypatch.setattr(site, "PULSE_S", 0.005)
    pulse = b": nothing new\n\n"
    assert pulse in islice(page, 100) and next(page) == pulse
    source.may_end.set()
    assert list(page)[-1].endswith(b", the end")
    closing.join(300)


def test_it_reads_less_often_if_nothing_happens_or_reading_is_slow() -> None:
    assert next_pause(1.0, 0.001, new=True) == FASTEST_S
    assert FASTEST_S < next_pause(FASTEST_S, 0.001, new=False) < SLOWEST_S
    assert next_pause(SLOWEST_S, 0.0, new=False) == SLOWEST_S
    assert next_pause(FASTEST_S, 0.3, new=True) == pytest.approx(10.0)
