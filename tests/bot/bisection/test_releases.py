"""Ranges of releases, and how the index is asked for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from bot.bisection.releases import CACHE_TTL_S, Range, releases
from bot.errors import ProvisionError, UsageError
from bot.toolchains.installer import IndexUnreachableError, Installer
from tests.bot.bisection.tiny_index import GOOD, make_index


class Shelf:
    """An index that has these versions; counts how often it is asked."""

    def __init__(self, *versions: str) -> None:
        self.versions = sorted(map(Version, versions))
        self.asked = 0

    def lowest_release(self, _python: Path, requirement: str) -> str | None:
        self.asked += 1
        wanted = SpecifierSet(requirement.removeprefix("tinyc"), prereleases="dev" in requirement)
        return next((str(version) for version in self.versions if version in wanted), None)


PARTS = st.integers(0, 3)


@given(versions=st.sets(st.tuples(PARTS, PARTS, PARTS), min_size=1), data=st.data())
def test_bounds_stand_for_all_that_begin_with_them(
    versions: set[tuple[int, int, int]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    oldest, newest = sorted(data.draw(st.tuples(*[st.tuples(PARTS, PARTS)] * 2)))
    texts = [".".join(map(str, version)) for version in versions]
    wanted = Range.parse(f"tinyc:{oldest[0]}.{oldest[1]}..{newest[0]}.{newest[1]}")
    inside = [version for version in sorted(versions) if oldest <= version[:2] <= newest]
    cache = tmp_path_factory.mktemp("cache")
    if inside:
        assert releases(wanted, Shelf(*texts), cache) == tuple(".".join(map(str, one)) for one in inside)
    else:
        with pytest.raises(UsageError, match=r"there is no release in tinyc:"):
            releases(wanted, Shelf(*texts), cache)


def test_post_releases_count_and_pre_releases_do_not(tmp_path: Path) -> None:
    shelf = Shelf("1.0", "1.0.post1", "1.1rc1", "1.1", "1.2.dev3", "2.0")
    assert releases(Range.parse("Tinyc:1..1"), shelf, tmp_path) == ("1.0", "1.0.post1", "1.1")


def test_bounds_that_are_nightly_builds_stand_for_themselves(tmp_path: Path) -> None:
    shelf = Shelf("1.0", "1.1.dev20261101", "1.1.dev20261102", "1.1.dev20261104", "1.1", "1.2.dev20261120")
    days = releases(Range.parse("tinyc:1.1.dev20261101..1.1.dev20261103"), shelf, tmp_path)
    assert days == ("1.1.dev20261101", "1.1.dev20261102")
    since = releases(Range.parse("tinyc:1.1.dev20261102..1.1"), shelf, tmp_path)
    assert since == ("1.1.dev20261102", "1.1.dev20261104", "1.1")


def test_the_index_is_asked_once_a_day(tmp_path: Path) -> None:
    shelf, wanted = Shelf("1.0", "1.1"), Range.parse("tinyc:1.0..1.1")
    assert releases(wanted, shelf, tmp_path) == releases(wanted, shelf, tmp_path)
    assert shelf.asked == 3
    [file] = tmp_path.iterdir()
    record = json.loads(file.read_bytes())
    file.write_text(json.dumps(record | {"asked": record["asked"] - CACHE_TTL_S}))
    releases(wanted, shelf, tmp_path)
    assert shelf.asked == 6
    file.write_text("{")
    releases(wanted, shelf, tmp_path)
    assert shelf.asked == 9


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("openvino", "no range of releases; write PACKAGE:OLDEST..NEWEST"),
        ("openvino:2024.1", "no range of releases"),
        ("openvino:2024.1..", "no range of releases"),
        ("openvino:new..old", "'new' in 'openvino:new..old' is no version"),
        ("openvino:2024.1..2024.2.post1", "is no release but a build of one"),
        ("openvino:2024.2.dev2..2024.2.dev1", "begins after its end"),
        ("openvino:2024.2..2024.1", "begins after its end"),
    ],
)
def test_what_is_no_range_says_why(text: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        Range.parse(text)
    assert why in str(caught.value)


def test_a_patch_within_its_own_minor_release_is_a_range() -> None:
    assert Range.parse("openvino:2024.1.2..2024.1").end == "<2024.2"


def test_real_wheels_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = {
        "1.0": GOOD,
        "1.1.dev1": GOOD,
        "1.1rc1": GOOD,
        "1.1": GOOD,
        "1.1.post1": GOOD,
        "1.10": GOOD,
        "2.0": GOOD,
    }
    for name, value in make_index(tmp_path, wheels).items():
        monkeypatch.setenv(name, value)
    found = releases(Range.parse("tinyc:1.0..1.10"), Installer(tmp_path), tmp_path / "cache")
    assert found == ("1.0", "1.1", "1.1.post1", "1.10")
    nightly = releases(Range.parse("tinyc:1.1.dev1..1.1rc1"), Installer(tmp_path), tmp_path / "cache")
    assert nightly == ("1.1.dev1", "1.1rc1")


def test_an_index_that_does_not_answer_is_not_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(IndexUnreachableError, match="cannot determine which releases satisfy") as caught:
        releases(Range.parse("tinyc:1..2"), Installer(tmp_path), tmp_path / "cache")
    assert isinstance(caught.value, ProvisionError)
    assert not list(tmp_path.glob("cache/*"))
