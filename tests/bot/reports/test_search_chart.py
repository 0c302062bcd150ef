"""The charts of a search: every model and every node, inside the picture, and nothing of other sources."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.campaigns.plan.case_source import SourceReport
from bot.reports import renderer
from bot.reports.report import build_report
from bot.reports.search_chart import WIDTH, build_curves, build_tree
from fuzzing.generate.graph_search import record
from fuzzing.generate.graph_search.rewards import coverage_gain
from fuzzing.generate.graph_search.search import Search, SearchSettings
from fuzzing.graph.operator_spec import GraphLimits
from tests.bot.reports import sample_campaign

SEEDS = range(30)


@pytest.fixture(scope="module")
def search() -> dict[str, Any]:
    """The record of a real search of 30 models, as it comes from the source."""
    settings = SearchSettings((3, 3))
    made, curve = Search(settings, 21, GraphLimits()), []
    for seed in SEEDS:
        step = made.advance(seed)
        made.reward(step, coverage_gain(step))
        curve.append(made.coverage.of_set()["OLC"])
    found = record.to_json(made, curve, record.run_ablation(settings, 21, SEEDS))
    again: dict[str, Any] = json.loads(json.dumps(found))
    return again


def test_the_record_has_all_models_and_nodes(search: dict[str, Any]) -> None:
    assert search["models"] == len(search["curve"]) == 30
    assert search["curve"] == sorted(search["curve"])
    assert [len(curve) for curve in search["ablation"].values()] == [30] * len(record.VARIANTS)
    assert len({tuple(curve) for curve in search["ablation"].values()}) == len(record.VARIANTS)
    tree = search["tree"]
    assert tree[0][:3] == [-1, "", 30]
    assert all(0 <= parent < at for at, (parent, *_) in enumerate(tree) if at)


def test_curves_end_where_the_searches_do(search: dict[str, Any]) -> None:
    chart = build_curves(search)
    assert chart is not None
    assert [one.name for one in chart.curves] == ["this search", *record.VARIANTS]
    assert [one.final for one in chart.curves] == [
        search["curve"][-1],
        *[curve[-1] for curve in search["ablation"].values()],
    ]
    for one in chart.curves:
        points = [tuple(map(float, point.split(","))) for point in one.points.split()]
        assert len(points) == 30
        assert all(0 <= x <= WIDTH and 0 <= y <= chart.bottom for x, y in points)
        assert points[-1][0] == chart.right
        assert one.y < chart.height


def test_long_curves_keep_their_end() -> None:
    shares = [number / 1000 for number in range(1000)]
    chart = build_curves({"curve": shares})
    assert chart is not None
    [one] = chart.curves
    assert len(one.points.split()) <= 201
    assert one.points.split()[-1].startswith(f"{chart.right}")


def test_the_tree_has_every_node_below_its_parent(search: dict[str, Any]) -> None:
    tree = build_tree(search)
    assert tree is not None
    assert [dot.block for dot in tree.dots] == [node[1] for node in search["tree"]]
    assert all(0 < dot.x < WIDTH and 0 <= dot.worth <= 1 for dot in tree.dots)
    assert all(dot.y > dot.up_y for dot in tree.dots[1:])
    assert len({(dot.x, dot.y) for dot in tree.dots}) == len(tree.dots)


@pytest.mark.parametrize("search", [{}, {"curve": [], "tree": []}, {"tree": [[-1, "", 0, 0]]}])
def test_nothing_is_drawn_of_sources_that_do_not_search(search: dict[str, Any]) -> None:
    assert build_curves(search) is None
    assert build_tree(search) is None


def test_the_report_shows_the_search(search: dict[str, Any], tmp_path: Path) -> None:
    hostile = search | {"tree": [[-1, "", 2, 1.0], [0, "<script>", 2, 1.0]]}
    source = SourceReport("graph-search", "onnx 1.0", 30, search=hostile)
    assert SourceReport.from_json(json.loads(json.dumps(source.to_json()))) == source
    report = build_report(replace(sample_campaign.view(), sources=(source,)))
    renderer.write_artifacts(report, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "The search of graph-search" in page
    drawn = [ET.fromstring(one) for one in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    curves, tree = drawn[-2:]
    assert len(curves.findall("polyline")) == 1 + len(record.VARIANTS)
    assert len(tree.findall("circle")) == 2
