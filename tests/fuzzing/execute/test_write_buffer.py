"""What waits for a pipe arrives whole and in order, however little of it the pipe takes at a time."""

from __future__ import annotations

import fcntl
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.execute.write_buffer import WriteBuffer


@given(st.lists(st.lists(st.binary(max_size=3000), max_size=5), max_size=8))
def test_all_of_it_arrives(batches: list[list[bytes]]) -> None:
    theirs, ours = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(ours, False)
    os.set_blocking(theirs, False)
    outgoing, came = WriteBuffer(), b""
    try:
        for parts in [*batches, []]:
            outgoing.add(parts)
            outgoing.write(ours)
            while outgoing.size:
                came += os.read(theirs, 1000)
                outgoing.write(ours)
        os.close(ours)
        while part := os.read(theirs, 1 << 16):
            came += part
    finally:
        os.close(theirs)
    assert came == b"".join(part for parts in batches for part in parts)


def test_many_parts_are_no_trouble() -> None:
    theirs, ours = os.pipe()
    outgoing = WriteBuffer()
    outgoing.add([b"x"] * 5000)
    outgoing.write(ours)
    assert outgoing.size == 0
    assert os.read(theirs, 1 << 16) == b"x" * 5000
    os.close(theirs)
    outgoing.add([b"y"])
    with pytest.raises(BrokenPipeError):
        outgoing.write(ours)
    outgoing.clear()
    outgoing.write(ours)
    os.close(ours)
