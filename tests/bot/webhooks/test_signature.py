"""Signatures: GitHub's own vector, and the laws."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.webhooks.signature import sign, verify

SECRET = b"It's a Secret to Everybody"
BODY = b"Hello, World!"
DIGEST = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


def test_githubs_own_vector() -> None:
    assert sign(SECRET, BODY) == f"sha256={DIGEST}"
    assert verify([SECRET], BODY, f"sha256={DIGEST}")


def test_the_previous_secret_is_accepted_too() -> None:
    assert verify([b"new", SECRET], BODY, f"sha256={DIGEST}")
    assert not verify([b"new", b"newer"], BODY, f"sha256={DIGEST}")
    assert not verify([], BODY, f"sha256={DIGEST}")


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        DIGEST,
        "sha256=",
        f"sha1={DIGEST}",
        f"sha256={DIGEST.upper()}",
        f"sha256={DIGEST}\n",
        f" sha256={DIGEST}",
        f"sha256={DIGEST[:-1]}",
        f"sha256={DIGEST[:-1]}é",
    ],
)
def test_anything_else_is_no_signature(header: str | None) -> None:
    assert not verify([SECRET], BODY, header)


@settings(deadline=None)
@given(secret=st.binary(min_size=1), body=st.binary())
def test_what_is_signed_verifies(secret: bytes, body: bytes) -> None:
    assert verify([secret], body, sign(secret, body))


@settings(deadline=None)
@given(secret=st.binary(min_size=1), body=st.binary(min_size=1), data=st.data())
def test_one_changed_bit_is_noticed(secret: bytes, body: bytes, data: st.DataObject) -> None:
    bit = data.draw(st.integers(0, len(body) * 8 - 1))
    changed = bytearray(body)
    changed[bit // 8] ^= 1 << bit % 8
    assert not verify([secret], bytes(changed), sign(secret, body))
