"""What holds for all tests: Hypothesis without a clock, and marks for what a machine may lack."""

from __future__ import annotations

import importlib.util
import operator
import os
import shutil
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from fuzzing import backends

# The suite draws the same examples each time; HYPOTHESIS_PROFILE=explore draws new ones.
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("assay", parent=_COMMON, derandomize=True)
settings.register_profile("explore", parent=_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "assay"))  # a slow machine must not fail a law

_COMPILER = "compiler_"
#: Their tests wait longer for releases, processes and clocks than others do.
_LONGEST = ("tests/scenarios/", "tests/bot/test_end_to_end.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--slow` runs the tests that are marked so; CI does."""
    parser.addoption("--slow", action="store_true", help="run the slow tests too")


def pytest_configure(config: pytest.Config) -> None:
    """Gives every backend its mark `compiler_<name>`."""
    config.addinivalue_line("markers", "sqlite: is about SQLite itself, and left out on PostgreSQL")
    for name in backends.names():
        package = backends.get(name).package
        config.addinivalue_line("markers", f"{_COMPILER}{name}: needs {package}")


@pytest.hookimpl(optionalhook=True)  # there is none without xdist
def pytest_xdist_auto_num_workers() -> int:
    """What `-n auto` is: one more than there are processors, as many tests wait for a process or a clock."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first, so that no worker is left alone with one in the end."""
    long = {
        item.path
        for item in items
        if item.nodeid.startswith(_LONGEST)
        or (item.get_closest_marker("slow") and item.config.getoption("slow"))
    }
    items.sort(key=lambda item: item.path not in long)  # stable: within a file nothing changes


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what this machine cannot run, and says why."""
    for mark in item.iter_markers():
        if mark.name.startswith(_COMPILER):
            backend = backends.get(mark.name.removeprefix(_COMPILER))
            if importlib.util.find_spec(backend.import_name.partition(".")[0]) is None:
                pytest.skip(f"{backend.package} is not installed here")
            for program in backend.programs:
                if shutil.which(program) is None:
                    pytest.skip(f"{backend.name} starts {program}, which is not on PATH here")
        elif mark.name == "sqlite" and os.environ.get("ASSAY_TEST_POSTGRESQL"):
            pytest.skip("it is about SQLite itself")
        elif mark.name == "slow" and not item.config.getoption("slow"):
            pytest.skip("slow: run with --slow")
        elif mark.name == "gpu" and shutil.which("nvidia-smi") is None:
            pytest.skip("no CUDA device here")


def _constants() -> dict[str, list[object]]:
    """What our modules keep in containers under public upper-case names: their items, values included."""
    return {
        f"{module}.{name}": [*value, *value.values()] if isinstance(value, dict) else [*value]
        for module, loaded in list(sys.modules.items())
        if module.partition(".")[0] in ("bot", "fuzzing", "tests")
        for name, value in list(vars(loaded).items())
        if name.isupper() and name[0] != "_" and isinstance(value, dict | list | set)
    }


@pytest.fixture(scope="module", autouse=True)
def unchanged_constants() -> Iterator[None]:
    """A test that changes a constant in place changes what the tests after it see, whichever those are."""
    before = _constants()
    yield
    after = _constants()
    changed = [
        name
        for name, items in before.items()
        if len(items) != len(now := after.get(name, items)) or not all(map(operator.is_, items, now))
    ]
    assert not changed, f"these tests leave constants changed: {', '.join(changed)}"
