"""Failures that come of sources which an overlay does not have accuse nobody."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.campaigns.classify.out_of_reach import explain_by_unreachable
from bot.errors import BrokenSourcesError
from bot.runners.protocol import OnEvent
from bot.store import findings
from bot.toolchains.unreachable_sources import UnreachableSources
from tests.bot.campaigns import fakes
from tests.bot.campaigns.conftest import World
from tests.bot.campaigns.fakes import PlainReady, PlainShard, PlainSpec
from tests.bot.campaigns.test_commit_toolchains import Complete, Overlay

BINARY = "src/relax/op/tensor/binary.cc"
SOURCES = UnreachableSources(
    "apache-tvm 0.26.0",
    gained=dict.fromkeys(("relax.op.subtract2", "subtract2", "axis2", "NewAttrs"), BINARY),
    changed=dict.fromkeys(("GridSample", "grid_sample", "Emit", "relax.op.image.grid_sample"), BINARY),
    touched=dict.fromkeys(("GridSample", "grid_sample", "Emit", "image", "resize2d"), BINARY),
)
#: As real messages of tvm_ffi 0.1, Python, pybind11 and MLIR, each about a name that the wheel lacks.
MISSING = [
    "Cannot find global function relax.op.subtract2",
    "module 'tvm.relax.op._ffi_api' has no attribute 'subtract2'",
    "Check failed: (reg != nullptr) is false: Operator relax.subtract2 is not registered",
    "Check failed: (it != type_key2index_.end()) is false: Cannot find type `relax.attrs.NewAttrs`",
    "Cannot find object type index for relax.attrs.NewAttrs",
    "Invalid config option 'relax.op.subtract2' candidates are: tirx.UnrollLoop",
    'Target kind "subtract2" is not defined. Target creation from string failed: subtract2',
    "cannot import name 'subtract2' from 'torch._C'",
    "subtract() got an unexpected keyword argument 'axis2'",
    "'_OpNamespace' 'aten' object has no attribute 'subtract2'",
    "error: unregistered operation 'onnx.subtract2' found in dialect",
    "/lib/libtvm.so: undefined symbol: subtract2",
]


@pytest.mark.parametrize("message", MISSING)
def test_a_name_that_only_the_missing_sources_have(message: str) -> None:
    why = explain_by_unreachable(message, "", SOURCES)
    assert "is not in apache-tvm 0.26.0" in why
    assert BINARY in why
    assert not explain_by_unreachable(message, "", UnreachableSources("apache-tvm 0.26.0")), (
        "a typo of its own"
    )
    assert not explain_by_unreachable(message.replace("2", "7").replace("New", "Old"), "", SOURCES)


@pytest.mark.parametrize(
    ("message", "operator", "named"),
    [
        (
            "Mismatched number of arguments when calling: `relax.op.image.resize2d(0: ir.Expr)`",
            "",
            "resize2d",
        ),
        (
            "Mismatched type on argument #1 when calling: `relax.op.image.resize2d(0: ir.Expr)`",
            "",
            "resize2d",
        ),
        ("resize2d(): incompatible function arguments. The following", "", "resize2d"),
        ("relax.op.image.grid_sample expects 4 dimensions", "", "grid_sample"),
        ("output 0: 3 of 4 values differ", "GridSample", "GridSample"),
        ("output 0: 3 of 4 values differ", "aten.grid_sample", "grid_sample"),
    ],
)
def test_what_the_change_alters_in_the_missing_sources_too(message: str, operator: str, named: str) -> None:
    why = explain_by_unreachable(message, operator, SOURCES)
    assert named in why
    assert BINARY in why
    unchanged = replace(SOURCES, changed={}, touched={})
    assert not explain_by_unreachable(message, operator, unchanged), "the change has no native part"


@pytest.mark.parametrize(
    ("message", "operator"),
    [
        ("name 'tensr' is not defined", "Add"),
        ("'Conv' object has no attribute 'strides'", "Conv"),
        ("output 0: 3 of 4 values differ", "If"),
        ("InternalError: Check failed: float32_t", "Add"),
        ("relu() got an unexpected keyword argument 'axis'", "Relu"),
        ("Mismatched number of arguments when calling: `relax.op.add(0: ir.Expr)`", "Add"),
        ("", ""),
    ],
)
def test_other_failures_are_the_commits_own(message: str, operator: str) -> None:
    keywords = {"if": BINARY, "Check": BINARY, "InternalError": BINARY, "float32_t": BINARY}
    sources = replace(SOURCES, changed={**SOURCES.changed, **keywords})
    assert explain_by_unreachable(message, operator, sources) == ""


def world_with(world: World, spec: type[PlainSpec], message: str) -> list[tuple[object, str]]:
    """A campaign in which one case fails with a message; asks for sources are counted."""
    asked: list[tuple[object, str]] = []

    def sources(asked_spec: Any, base: str) -> UnreachableSources:
        asked.append((asked_spec, base))
        return SOURCES

    class Runner(fakes.Runner):
        def run(self, shard: PlainShard, on_event: OnEvent, stop: threading.Event) -> None:
            def pass_on(event: dict[str, Any]) -> None:
                outcome = event.get("outcome", {})
                if outcome.get("case") == fakes.IDS["Add_regressed"] and outcome["verdict"] == "crash":
                    evidence = outcome["evidence"] | {"error": "AttributeError", "message": message}
                    event = event | {"outcome": outcome | {"evidence": evidence}}
                on_event(event)

            super().run(shard, pass_on, stop)

    world.runner = Runner(world.clock)
    world.use(
        resolve=lambda config, read: spec(fakes.resolve(config, read).label),
        unreachable_sources=sources,
    )
    return asked


def found(world: World, campaign_id: int) -> dict[str, tuple[str, str]]:
    with world.database.reading() as session:
        rows = findings.of_campaign(session, campaign_id)
        return {fakes.NAMES[one.case_id]: (one.classification, one.reason) for one in rows}


def test_a_case_that_needs_the_missing_sources_is_no_regression(world: World) -> None:
    """As a commit that renames a native function, passes the smoke test and fails in one converter."""
    asked = world_with(world, Overlay, MISSING[0])
    campaign_id = world.push()
    world.run()
    classification, reason = found(world, campaign_id)["Add_regressed"]
    assert classification == "inconclusive"
    assert "`relax.op.subtract2` is not in apache-tvm 0.26.0" in reason
    assert found(world, campaign_id)["Conv_regressed_wrong"][0] == "regression", (
        "it is about another operator"
    )
    assert {base for _, base in asked} == {"1" * 40}
    assert not any("Add_regressed" in one.note for one in world.progress if one.lasting)
    repeated = [shard.cases for shard in world.runner.shards if shard.fresh]
    assert fakes.IDS["Add_regressed"] not in {case for cases in repeated for case in cases}


def test_a_toolchain_that_is_no_overlay_lacks_nothing(world: World) -> None:
    class Release(PlainSpec):
        pass

    asked = world_with(world, Release, MISSING[0])
    campaign_id = world.push()
    world.run()
    assert found(world, campaign_id)["Add_regressed"][0] == "regression"
    assert asked == []


def test_nothing_is_read_where_nothing_is_lost(world: World) -> None:
    asked = world_with(world, Overlay, "")
    world.runner.replaced = dict.fromkeys(fakes.TESTS, (("pass",), ("pass",)))
    campaign_id = world.push()
    world.run()
    assert found(world, campaign_id) == {}
    assert asked == []


def test_a_first_use_of_older_native_code_breaks_nothing(world: World) -> None:
    """The commit's own change is Python alone, and names what a commit after the wheel added natively."""

    def provision(spec: Any, data_dir: Path, progress: Any) -> PlainReady:
        if spec.label == "standin==2":
            raise BrokenSourcesError(f"{spec.label}: ValueError: {MISSING[0]}")
        return fakes.provision(spec, data_dir, progress)

    world.use(
        resolve=lambda config, read: Complete(fakes.resolve(config, read).label),
        provision=provision,
        unreachable_sources=lambda _spec, _base: SOURCES,
    )
    world.push()
    world.run()
    (reported,) = world.reports.troubles
    assert reported.kind == "native"
    assert "is not in apache-tvm 0.26.0" in reported.reason
