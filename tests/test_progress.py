"""What is told of long work."""

from __future__ import annotations

import pytest

from fdgnn import context as progress


@pytest.fixture
def clock(monkeypatch):
    """A clock that advances by hand."""

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_a_first_item_that_takes_long(clock, capsys):
    """There is no rate yet, so none is told."""

    def items():
        for number in range(3):
            clock.now += 60.0
            yield number

    assert list(progress.Context(quiet=False).track(items(), 3, "networks")) == [0, 1, 2]
    assert capsys.readouterr().err.splitlines() == [
        "networks: 1 of 3",
        "networks: 2 of 3, 1 min 0 s each, 1 min 0 s left",
        "networks: 3 of 3, 1 min 0 s each",
    ]


def test_items_that_take_no_time(clock, capsys):
    """The clock may be too coarse to tell two items apart."""
    assert list(progress.Context(quiet=False).track(iter("ab"), 5, "letters", done=3)) == ["a", "b"]
    assert capsys.readouterr().err == "letters: 5 of 5\n"


def test_quiet_says_nothing(clock, capsys):
    clock.now = 100.0
    assert list(progress.Context().track(iter("ab"), 2, "letters")) == ["a", "b"]
    assert capsys.readouterr().err == ""
