"""Cases and answers, several to a frame."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.cases import TestCase, Value
from fuzzing.execute.batches import (
    Answer,
    AnswerBatch,
    CaseRequest,
    RequestBatch,
    encode_request,
    parse_answers,
    parse_requests,
)
from fuzzing.execute.protocol import FrameReader, ProtocolError, decode_values, encode_values
from tests.fuzzing.cases.strategies import cases, names, values


@given(st.lists(cases(), min_size=1, max_size=5), st.integers(0, 2**63))
def test_cases_of_a_batch_come_as_they_were_added(given_: list[TestCase], first: int) -> None:
    batch = RequestBatch()
    for number, case in enumerate(given_, first):
        batch.add(number, *encode_request(case))
    assert batch
    [frame] = FrameReader().feed(b"".join(batch.frame()))
    assert parse_requests(*frame) == [
        CaseRequest(number, case.program, list(case.values())) for number, case in enumerate(given_, first)
    ]
    assert not batch
    assert batch.size == 0


def packed(sent: list[Answer]) -> bytes:
    batch = AnswerBatch()
    for one in sent:
        batch.add(one.number, one.marks, one.error, (one.size, one.data), one.notes)
    return batch.frame()


def answer(number: int, outputs: list[tuple[str, Value]]) -> Answer:
    return Answer(number, (10, 2_000_000, 0), None, *encode_values(outputs))


@given(st.lists(st.lists(st.tuples(names, values), max_size=3), max_size=5))
def test_answers_come_as_they_were_given(outputs: list[list[tuple[str, Value]]]) -> None:
    sent = [answer(number, one) for number, one in enumerate(outputs)]
    [frame] = FrameReader().feed(packed(sent))
    got = list(parse_answers(*frame))
    assert got == sent
    assert [decode_values(one.size, one.data) for one in got] == outputs


def test_what_was_raised_comes_as_an_object() -> None:
    [frame] = FrameReader().feed(packed([Answer(7, (1,), {"error": "E"})]))
    assert list(parse_answers(*frame)) == [Answer(7, (1,), {"error": "E"})]


@pytest.mark.parametrize(
    "header",
    [
        None,
        3,
        [3],
        [[1, [2], None, 2, 4]],
        [[1, [2], None, 2, 4, [3]]],
        [[1, [2], None, 2, 4, [["x"]]]],
        [["x", [2], None, 2, 4, []]],
        [[None, [2], None, 2, 4, []]],
        [[1, 2, None, 2, 4, []]],
        [[1, ["x"], None, 2, 4, []]],
        [[1, [2], [], 2, 4, []]],
        [[1, [2], None, None, 4, []]],
        [[1, [2], None, 2, 9, []]],
        [[1, [2], None, 2, -1, []]],
        [[1, [2], None, 2, None, []]],
        [[float("inf"), [2], None, 2, 4, []]],
        [[1, [10**400], None, 2, 4, []]],
        [[1, [-1, 2], None, 2, 4, []]],
    ],
    ids=str,
)
def test_answers_that_are_none_are_refused(header: Any) -> None:
    with pytest.raises(ProtocolError):
        list(parse_answers({"answers": header}, bytes(8)))


@pytest.mark.parametrize(
    ("size", "data"),
    [
        (3, b"[]"),
        (-1, b"[]"),
        (1, b"[]"),
        (2, b"[]x"),
        (0, b""),
        (2, b"{}"),
        (2, b"\xff\xff"),
        (23, b'[["y",["uint8",[2],2]]]a'),
        (24, b'[["y",["uint8",[2],-2]]]aa'),
    ],
    ids=str,
)
def test_outputs_that_are_none_are_refused(size: int, data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_values(size, data)


def test_a_frame_without_answers_is_refused() -> None:
    with pytest.raises(ProtocolError):
        list(parse_answers({}, b""))


def test_those_before_a_wrong_one_are_given_first() -> None:
    found = parse_answers({"answers": [[1, [5], None, 1, 2, []], [2, [5], None, 0, 99, []]]}, b"ab")
    assert next(found) == Answer(1, (5,), None, 1, b"ab")
    with pytest.raises(ProtocolError):
        next(found)


def test_how_cases_are_watched_and_what_was_seen_travel_with_them() -> None:
    batch, instrumentation = RequestBatch(), {"record": True}
    batch.instrumentation = instrumentation
    batch.add(1, b'"OnnxModel",1,[]]', b"m")
    [frame] = FrameReader().feed(b"".join(batch.frame()))
    assert [job.instrumentation for job in parse_requests(*frame)] == [instrumentation]
    [frame] = FrameReader().feed(packed([Answer(1, (), None, notes=(("pass", "fold"),))]))
    assert [answer.notes for answer in parse_answers(*frame)] == [(("pass", "fold"),)]
