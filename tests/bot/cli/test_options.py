"""Options that several commands share."""

from __future__ import annotations

import pytest

from bot.cli.common.options import check_device, parse_options
from bot.errors import UsageError


def test_options_by_name() -> None:
    assert parse_options(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize(
    ("given", "why"), [(["a"], "write NAME=VALUE"), (["=1"], "write NAME=VALUE"), (["a=1", "a=2"], "twice")]
)
def test_what_is_no_option(given: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_options(given)


def test_a_device_is_one_of_the_backends() -> None:
    check_device("openvino", "GPU")
    with pytest.raises(UsageError, match="openvino has no such device; choose from CPU, GPU"):
        check_device("openvino", "NPU")
