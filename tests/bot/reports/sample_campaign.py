"""A campaign as it comes out of two OpenVINO releases, made of fixed data so that reports can be compared."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np

from bot.campaigns.plan.case_source import SourceReport
from bot.campaigns.plan.ranking import Ranking
from bot.campaigns.report.summary import ProgramText
from bot.reports.campaign_view import CampaignView, FindingView, Tally, ToolchainView, VerdictCount
from bot.reports.report import Report, build_report
from bot.store.models import Classification, Side
from bot.store.step_cost import StepCost
from fuzzing.cases import OnnxModel, Provenance, Tensor, TestCase
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict

TARGET = "acme/graphs"
HEAD, BASE = "4f1c2a9be07d3c55a1e86b0d9f7743c2d51e6a80", "9d02be7716ac40f3b8e5d2c1a0947f6e83b5c1d4"
NEW_TOOLS = ToolchainView(
    "openvino 2026.4.1",
    {"numpy": "2.4.6", "openvino": "2026.4.1"},
    ("openvino==2026.4.1",),
    "3.11.7",
    "Linux x86_64",
)
OLD_TOOLS = ToolchainView(
    "openvino 2024.0.0",
    {"numpy": "1.26.4", "openvino": "2024.0.0"},
    ("openvino==2024.0.0", "numpy<2"),
    "3.11.7",
    "Linux x86_64",
)

SPLIT = """\
Exception from src/frontends/onnx/frontend/src/frontend.cpp:389:
Check 'dimension_at_axis % num_splits == 0' failed at src/core/include/split_shape_inference.hpp:62:
While validating node 'opset1::Split Split_22 (Parameter_20[0]:i64[4]) -> (dynamic[...])'
Dimension of data input shape along 'axis': 4 must be evenly divisible by 'num_splits' attribute value: 5
reported by @octocat, see #123 and https://github.com/acme/graphs/issues/7, run in /home/jane/build"""

#: operator → cases of it, about as ONNX's node tests spread.
_SPREAD = """
Abs=1 Add=9 AffineGrid=8 ArgMax=16 Attention=94 AveragePool=22 BatchNormalization=4 Cast=61
CastLike=44 Conv=9 ConvTranspose=12 CumSum=8 DequantizeLinear=14 Dropout=11 Einsum=9 Elu=6 Gather=6
Gemm=12 GroupNormalization=4 If=4 LSTM=5 LayerNormalization=60 Loop=4 MatMul=8 MaxPool=23 Mod=17
NonMaxSuppression=12 Pad=9 QLinearMatMul=14 QuantizeLinear=15 RNN=4 ReduceSum=13 Reshape=11
Resize=39 Scan=2 ScatterND=7 SequenceMap=12 Slice=10 Softmax=12 SoftmaxCrossEntropyLoss=68 Split=16
StringNormalizer=9 TopK=9 Where=5
"""
OPERATORS = {name: int(n) for name, n in (item.split("=") for item in _SPREAD.split())}
UNSUPPORTED = {
    "Attention": 9,
    "SequenceMap": 12,
    "StringNormalizer": 9,
    "Cast": 14,
    "CastLike": 10,
    "Scan": 1,
}


def case_named(test: str, operator: str) -> TestCase:
    model = f"an ONNX model: {test}".encode() * 3
    values = Tensor.of(np.array([[0.5, -1.25], [3e-05, 7.0]], np.float32))
    origin = Provenance("onnx-node-tests", test, operator, "onnx", "1.23.2")
    return TestCase(OnnxModel(model), (("x", values),), origin, (("y", values),))


made_cases: dict[str, TestCase] = {}  # those that were made, by id


def outcome(case: str, verdict: Verdict, phase: Phase, summary: str, evidence: Evidence) -> Outcome:
    return Outcome(case, "openvino", "ab" * 32, "CPU", verdict, phase, summary, {"convert": 0.01}, evidence)


def finding(
    test: str,
    operator: str,
    classification: Classification,
    title: str,
    *,
    verdict: Verdict = Verdict.CRASH,
    phase: Phase = Phase.CONVERT,
    evidence: Evidence | None = None,
    runs: tuple[int, int] = (3, 0),
    reason: str = "",
) -> FindingView:
    case = case_named(test, operator)
    made_cases[case.id] = case
    evidence = evidence or Evidence("RuntimeError", f"{operator} is not what this converter expects")
    seen = outcome(case.id, verdict, phase, title.partition(": ")[2], evidence)
    at_head = seen if classification is not Classification.FIXED else None
    at_base = seen if classification in (Classification.FIXED, Classification.ALREADY_BROKEN) else None
    return FindingView(
        case=case.id,
        test=test,
        operator=operator,
        classification=classification,
        head=at_head,
        base=at_base,
        head_runs=Tally(runs[0], 3),
        base_runs=Tally(runs[1], 3),
        signature=hashlib.sha256(title.encode()).hexdigest()[:16],
        title=title,
        size=200 + len(test),
        reason=reason,
    )


def findings() -> list[FindingView]:
    new, old, fixed = Classification.REGRESSION, Classification.ALREADY_BROKEN, Classification.FIXED
    split = "openvino convert crash: Split must be evenly divisible (AffineGrid)"
    crash = Evidence(
        "RuntimeError",
        SPLIT,
        ("openvino/frontend.py:load", "openvino/frontend.py:convert"),
        log="reading\nToken ghp_0123456789abcdefghijABCDEFGHIJ012345\n",
    )
    value = Mismatch(
        "y", "value", "12 of 96 elements", 0.125, 0.4375, 0.07, (0, 2, 5), "3.5625", "4.0", 1e-3, 1e-7,
        ulps=(60, 14, 8, 2, *([0] * 14), 1, 5, 6, 0), passes_at=0.0875, compiled_error=0.4374,
        library_error=2.1e-7,
    )  # fmt: skip
    wrong = Evidence(
        mismatches=(value,),
        ablation_runs=(("optimization=disabled", "pass"), ("optimization=basic", "wrong_result")),
        component="graph optimiser, level basic",
    )
    killed = Evidence(
        signal="SIGSEGV", native="Fatal Python error: Segmentation fault\n\nCurrent thread 0x01"
    )
    rows = [
        finding(f"test_affine_grid_{d}d{a}_expanded", "AffineGrid", new, split, evidence=crash)
        for d in (2, 3)
        for a in ("", "_align_corners")
    ]
    rows += [
        finding(
            "test_qlinearmatmul_3D_int8_float16",
            "QLinearMatMul",
            new,
            "openvino run wrong_result: QLinearMatMul int8",
            verdict=Verdict.WRONG_RESULT,
            phase=Phase.RUN,
            evidence=wrong,
        ),
        finding(
            "test_loop13_seq",
            "Loop",
            new,
            "openvino compile crash: SIGSEGV (Loop)",
            phase=Phase.COMPILE,
            evidence=killed,
        ),
    ]
    rows += [
        finding(f"test_resize_{name}", "Resize", old, "openvino convert crash: Resize axes", runs=(3, 3))
        for name in ("downsample_scales_cubic", "upsample_sizes_nearest", "tf_crop_and_resize")
    ]
    rows += [
        finding(
            "test_nonmaxsuppression_limit_output_size",
            "NonMaxSuppression",
            old,
            "openvino run wrong_result: NonMaxSuppression",
            verdict=Verdict.WRONG_RESULT,
            phase=Phase.RUN,
            evidence=wrong,
            runs=(3, 3),
        )
    ]
    rows += [
        finding(
            f"test_group_normalization_{name}",
            "GroupNormalization",
            fixed,
            "openvino convert crash: GroupNormalization",
            runs=(0, 3),
        )
        for name in ("epsilon", "example")
    ]
    rows += [
        finding(
            "test_einsum_inner_prod",
            "Einsum",
            Classification.FLAKY,
            "openvino run wrong_result: Einsum",
            verdict=Verdict.WRONG_RESULT,
            phase=Phase.RUN,
            evidence=wrong,
            runs=(1, 0),
            reason="failed 1 of 3 times in fresh processes",
        )
    ]
    return rows


def counts(found: list[FindingView]) -> list[VerdictCount]:
    rows: list[VerdictCount] = []
    for operator, cases in OPERATORS.items():
        for side in Side:
            bad: dict[Verdict, int] = {}
            for item in found:
                seen = item.head if side is Side.HEAD else item.base
                if item.operator == operator and seen is not None:
                    bad[seen.verdict] = bad.get(seen.verdict, 0) + 1
            if operator in UNSUPPORTED:
                bad[Verdict.UNSUPPORTED] = UNSUPPORTED[operator] + (side is Side.BASE)
            rows += [VerdictCount(side, operator, verdict, n) for verdict, n in bad.items()]
            rows.append(VerdictCount(side, operator, Verdict.PASS, cases - min(cases, sum(bad.values()))))
    return [row for row in rows if row.cases]


SOURCES = (
    SourceReport("onnx-node-tests", "onnx 1.23.2", 778, {"a sequence as graph input": 21}),
    SourceReport("torch-opinfo", "torch 2.13.0", 100, {"needs an opset beyond 26": 17}, 16, 12, 1),
    SourceReport("keras-tests", whole=0, failed="keras-tests needs keras | and `pytest`: pip install keras"),
)
RANKING = Ranking(
    strategy="change",
    seed=7,
    change={"digest": "d" * 64, "files": 3, "truncated": True},
    history={"digest": "e" * 64, "cases": 878},
    suites=("openvino.onnx",),
)


def view() -> CampaignView:
    found = findings()
    tallied = counts(found)
    ran = sum(row.cases for row in tallied if row.side is Side.HEAD)
    return CampaignView(
        target=TARGET,
        stable_name=TARGET,
        campaign=12,
        head=HEAD,
        base=BASE,
        ref="refs/heads/main",
        trigger="push",
        seed=7,
        backend="openvino",
        device="CPU",
        head_toolchain=NEW_TOOLS,
        base_toolchain=OLD_TOOLS,
        planned=ran + 140,
        counts=tallied,
        findings=found,
        stopped="budget",
        skipped={"a sequence as graph input": 21, "needs an opset beyond 26": 17},
        library="onnx 1.23.2, torch 2.13.0",
        sources=SOURCES,
        ranking=RANKING,
        durations={"planning": 6.2, "provisioning": 11.0, "running": 74.5, "comparing": 140.0},
        phases={Side.HEAD: {Phase.CONVERT: {Verdict.CRASH: 7}, Phase.RUN: {Verdict.WRONG_RESULT: 3}}},
        cached={Side.HEAD: 100, Side.BASE: 738},
        costs={
            "running": StepCost(638, 74.2, 118.72, 2, 3, {"convert": 60.5, "compile": 41.25, "run": 12.5}, 90)
        },
        config={"version": 1, "backend": "openvino", "reports": {"mode": "dry-run"}},
        started_at=datetime(2026, 11, 20, 9, 30, tzinfo=UTC),
        ended_at=datetime(2026, 11, 20, 9, 34, 13, tzinfo=UTC),
    )  # fmt: skip


def describe(ids: Collection[str]) -> Mapping[str, ProgramText]:
    text = '<ir_version: 9, opset_import: ["" : 20]>\n{} (float[2,2] x) => (float[2,2] y) {{\n  y = {}(x)\n}}'
    found = {}
    for case in ids:
        if case in made_cases:
            shown = text.format(made_cases[case].provenance.test, made_cases[case].provenance.operator)
            found[case] = ProgramText(shown, f'model = onnx.parser.parse_model("""\n{shown}\n""")')
    return found


def report() -> Report:
    seen = view()
    return build_report(seen, made_cases.__getitem__, describe)


def config(mode: str = "dry-run") -> SimpleNamespace:
    return SimpleNamespace(reports=SimpleNamespace(mode=mode, labels=["assay"]))
