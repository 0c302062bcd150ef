"""Frames, values and the page between supervisor and worker."""

from __future__ import annotations

import json
import mmap
import os
import struct
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.cases import Absent, Sequence, Tensor, Value
from fuzzing.errors import InfrastructureError
from fuzzing.execute.protocol import (
    IDLE,
    MAX_BLOB,
    MAX_HEADER,
    PAGE_BYTES,
    PHASES,
    BlobReader,
    FrameReader,
    ProtocolError,
    Status,
    decode_inputs,
    decode_values,
    describe_values,
    encode_values,
    pack,
    page_view,
    read_frame,
    read_status,
)
from fuzzing.outcomes import Phase
from tests.fuzzing.cases.strategies import names, values

PREFIX = struct.Struct("<4sIQ")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
headers = st.dictionaries(st.text(), json_values, max_size=4)
frames = st.lists(st.tuples(headers, st.binary(max_size=200)), max_size=6)


@given(frames, st.data())
def test_frames_survive_any_cutting(sent: list[tuple[dict[str, Any], bytes]], data: st.DataObject) -> None:
    stream = b"".join(pack(*frame) for frame in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    reader = FrameReader()
    got: list[tuple[dict[str, Any], bytes]] = []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got.extend(reader.feed(stream[begin:end]))
    assert got == sent


def test_a_frame_byte_by_byte_comes_with_its_last() -> None:
    frame, reader = pack({"seq": 1}, b"blob"), FrameReader()
    for byte in frame[:-1]:
        assert list(reader.feed(bytes([byte]))) == []
    assert list(reader.feed(frame[-1:])) == [({"seq": 1}, b"blob")]


def test_frames_are_read_however_large_until_no_more_come() -> None:
    sent = [({"seq": 1}, b""), ({"seq": 2}, b"blob"), ({}, bytes(range(256)) * 4096)]
    end, begin = os.pipe()

    def write() -> None:  # far more than a pipe holds, so that frames come in pieces
        with open(begin, "wb") as pipe:
            pipe.write(b"".join(pack(*frame) for frame in sent) + pack({}, b"cut off")[:-1])

    writer = threading.Thread(target=write)
    writer.start()
    assert [read_frame(end) for _ in sent] == sent
    assert read_frame(end) is None
    writer.join()
    os.close(end)


@given(st.binary(min_size=PREFIX.size).filter(lambda data: not data.startswith(b"asy1")))
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(FrameReader().feed(data))


@given(st.binary(max_size=300))
def test_garbage_behind_a_good_prefix_gives_objects_or_is_refused(data: bytes) -> None:
    stream = PREFIX.pack(b"asy1", min(len(data), 40), max(0, len(data) - 40)) + data
    try:
        got = list(FrameReader().feed(stream))
    except ProtocolError:
        return
    assert all(isinstance(header, dict) for header, _ in got)


def test_frames_before_the_garbage_are_given_first() -> None:
    reader = FrameReader().feed(pack({"seq": 1}) + b"x" * 40)
    assert next(reader) == ({"seq": 1}, b"")
    with pytest.raises(ProtocolError, match="not a frame"):
        next(reader)


@pytest.mark.parametrize(("header", "blob"), [(MAX_HEADER + 1, 0), (2, MAX_BLOB + 1), (2**32 - 1, 2**64 - 1)])
def test_lengths_are_bounded_before_anything_is_kept(header: int, blob: int) -> None:
    with pytest.raises(ProtocolError):
        list(FrameReader().feed(PREFIX.pack(b"asy1", header, blob)))


@pytest.mark.parametrize("header", [b"", b"{", b"[]", b"null", b"1", b"\xff\xfe", b"[" * 200_000])
def test_a_header_must_be_an_object(header: bytes) -> None:
    with pytest.raises(ProtocolError, match="header"):
        list(FrameReader().feed(PREFIX.pack(b"asy1", len(header), 0) + header))


def test_a_protocol_error_is_the_machines() -> None:
    assert issubclass(ProtocolError, InfrastructureError)


@given(st.lists(st.tuples(names, values), max_size=4), st.binary(max_size=9))
def test_values_survive(given_: list[tuple[str, Value]], before: bytes) -> None:
    text, blob = describe_values(given_)
    assert decode_inputs(json.loads(text), before + blob, len(before)) == (given_, len(before + blob))
    assert decode_values(*encode_values(given_)) == given_


def test_every_bit_of_a_tensor_survives() -> None:
    odd = Tensor("float32", (2,), b"\x01\x00\xc0\x7f\x00\x00\x00\x80")  # a NaN with a payload, and -0
    size, data = encode_values([("odd", odd), ("s", Sequence((odd, odd))), ("none", Absent())])
    assert len(data) - size == 3 * 8
    [(_, back), *_] = decode_values(size, data)
    assert isinstance(back, Tensor)
    assert back.data == odd.data


FLOAT = ["float32", [2], 8]


@pytest.mark.parametrize(
    "items",
    [
        None,
        3,
        [3],
        [["x"]],
        [["x", FLOAT, 1]],
        [["x", 3]],
        [["x", "text"]],
        [["x", ["float32", [2]]]],
        [["x", ["float99", [2], 8]]],
        [["x", ["float32", [3], 8]]],
        [["x", ["float32", [-2], 8]]],
        [["x", ["float32", 2, 8]]],
        [["x", ["float32", [2], "y"]]],
        [["x", ["float32", [2], None]]],
        [["x", ["float32", [float("inf")], 8]]],
        [["x", ["float32", [2], float("inf")]]],
        [["x", ["float32", [2], float("nan")]]],
        [["x", ["float32", [2**70], 8]]],
        [["x", {"items": 3}]],
        [["x", {"things": []}]],
        [["x", {"items": [["float32", [2], 99]]}]],
        [["x", FLOAT], ["y", FLOAT]],
    ],
    ids=lambda items: str(items)[:40],
)
def test_values_that_are_none_are_refused(items: Any) -> None:
    with pytest.raises(ProtocolError):
        BlobReader(bytes(8)).values(items)


def test_values_nested_without_end_are_refused() -> None:
    nested: Any = None
    for _ in range(5000):
        nested = {"items": [nested]}
    with pytest.raises(ProtocolError):
        BlobReader(b"").values([["x", nested]])


def test_a_size_cannot_walk_backwards() -> None:
    """An empty tensor of negative size would have the next one read what was read already."""
    with pytest.raises(ProtocolError):
        BlobReader(bytes(8)).values([["x", FLOAT], ["y", ["float32", [0], -8]], ["z", FLOAT]])


@given(values, values)
def test_a_sequence_of_anything_but_tensors_is_refused(one: Value, other: Value) -> None:
    text, blob = describe_values([("one", one), ("other", other)])
    inner = [item for _, item in json.loads(text)]
    if all(isinstance(value, Tensor) for value in (one, other)):
        [(_, value)] = BlobReader(blob).values([["s", {"items": inner}]])
        assert value == Sequence((one, other))  # type: ignore[arg-type]
    else:
        with pytest.raises(ProtocolError):
            BlobReader(blob).values([["s", {"items": inner}]])


whole = st.integers(0, 2**64 - 1)


@given(st.lists(st.tuples(whole, whole, st.integers(0, 3)), min_size=1), st.data())
def test_the_page_says_what_is_going_on(cases: list[tuple[int, int, int]], data: st.DataObject) -> None:
    page = mmap.mmap(-1, mmap.PAGESIZE)
    view, now = page_view(page), 0
    for number, log, entered in cases:
        view[0], view[1] = number, log
        for phase in range(entered):  # a case that raises ends before it has been through all
            now = view[2 + phase] = now + data.draw(st.integers(1, 10**15))
            assert read_status(page) == Status(number, PHASES[1 + phase], now / 1e9, log)
        now = view[5] = now + data.draw(st.integers(1, 10**15))
        assert read_status(page) == Status(IDLE, Phase.IMPORT, now / 1e9, log)


def test_a_new_page_says_idle() -> None:
    status = read_status(mmap.mmap(-1, mmap.PAGESIZE))
    assert (status.seq, status.phase) == (IDLE, Phase.IMPORT)


@given(st.binary(min_size=PAGE_BYTES, max_size=PAGE_BYTES))
def test_a_page_of_garbage_is_read_all_the_same(data: bytes) -> None:
    page = bytearray(data)
    assert read_status(page).phase in PHASES


def test_phases_are_in_the_order_in_which_the_worker_counts_them() -> None:
    assert PHASES == (Phase.IMPORT, Phase.CONVERT, Phase.COMPILE, Phase.RUN)


def test_large_blobs_are_not_copied_into_text() -> None:
    big = Tensor.of(np.zeros(1 << 20, np.uint8))
    text, blob = describe_values([("big", big)])
    assert len(text) + len(blob) < len(big.data) + 200
