"""Lines in batches, from one thread to another."""

from __future__ import annotations

import threading
from itertools import chain

import pytest

from bot.runners import line_batches
from bot.runners.line_batches import LineBatches


def test_no_line_is_lost_or_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_batches, "BATCH_S", 0.001)
    monkeypatch.setattr(line_batches, "_LINES", 7)
    lines, sent = LineBatches(), [str(number).encode() for number in range(5_000)]

    def write() -> None:
        for line in sent:
            lines.put(line)
        lines.end()

    thread = threading.Thread(target=write)
    thread.start()
    batches = list(lines)
    thread.join()
    assert list(chain.from_iterable(batches)) == sent


@pytest.mark.parametrize("limit", ["_LINES", "_BYTES"])
def test_a_large_batch_does_not_wait(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_batches, "BATCH_S", 600)
    monkeypatch.setattr(line_batches, limit, 2)
    lines = LineBatches()
    threading.Timer(0.05, lambda: list(map(lines.put, (b"a", b"b")))).start()
    assert next(iter(lines)) == [b"a", b"b"]


def test_silence_is_an_empty_batch_and_the_end_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_batches, "BATCH_S", 0.001)
    lines = LineBatches()
    taken = iter(lines)
    assert next(taken) == []
    lines.put(b"a")
    lines.end()
    assert list(taken) == [[b"a"]]
