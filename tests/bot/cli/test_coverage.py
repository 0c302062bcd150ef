"""`assay coverage`: the table, the JSON, the page. `ASSAY_GOLDEN=write` makes the golden files anew."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cli.common.console import format_metric
from bot.cli.corpora import coverage
from bot.cli.corpora import coverage_page as page
from bot.errors import UsageError
from fuzzing.cases import Corpus, OnnxModel, Provenance, Tensor, TestCase
from fuzzing.coverage.__main__ import to_json
from tests.bot.cli.command_helpers import CommandResult, assay
from tests.fuzzing.coverage.coverage_kit import SIX, build_tally, first_model, random_model, second_model

GOLDEN = Path(__file__).parents[2] / "golden" / "coverage"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two models that were counted by hand, a file that is none, and their operators."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "a").mkdir()
    (folder / "a" / "model.onnx").write_bytes(first_model().SerializeToString())
    (folder / "b.onnx").write_bytes(second_model().SerializeToString())
    (folder / "broken.onnx").write_bytes(b"\xff")
    (folder / "six").write_text(
        "\n".join(f"{name} {' '.join(map(str, sorted(SIX.in_degrees[name])))}" for name in SIX.in_degrees)
    )
    return folder


@pytest.fixture(scope="module")
def ran(models: Path) -> CommandResult:
    """The command for people, with a page."""
    return assay(
        models / "data", "coverage", models, "--operators", models / "six", "--report", models / "page"
    )


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """What the program tells of the two models, and of three larger ones."""
    more = [random_model(seed, 30, closing=True) for seed in range(3)]
    tally, _ = build_tally(SIX, first_model(), second_model(), *more)
    broken = [{"file": "cases/<b>.onnx", "reason": "holds no graph"}]
    return to_json(tally) | {"broken": 1, "seconds": 0.1, "left_out": broken}


def check_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("ASSAY_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"{path} differs; ASSAY_GOLDEN=write makes it anew"


def test_the_table(ran: CommandResult, models: Path) -> None:
    assert ran.code == 0, ran.err
    lines = [line.rstrip() for line in ran.out.replace(str(models), "MODELS").splitlines()]
    check_golden("table.txt", "\n".join(lines) + "\n")
    assert f"left out {models / 'broken.onnx'}: is no ONNX model" in ran.err


def test_json_is_what_the_program_tells(ran: CommandResult, models: Path) -> None:
    again = assay(
        models / "data", "coverage", models / "a", models / "b.onnx", "--operators", models / "six", "--json"
    )
    assert again.code == 0, again.err
    tally, _ = build_tally(SIX, first_model(), second_model())
    expected = json.loads(json.dumps(to_json(tally)))
    seconds = again.result["seconds"]
    assert again.result == expected | {
        "broken": 0,
        "left_out": [],
        "report": None,
        "seconds": seconds,
    }


def test_an_unknown_operator_set_is_a_mistake_of_usage(models: Path) -> None:
    ran = assay(models / "data", "coverage", models, "--operators", "izra")
    assert ran.code == 2
    assert "no operator set is called 'izra'" in ran.err
    assert ran.out == ""


def test_a_folder_without_a_model_is_a_mistake_of_usage(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ran = assay(tmp_path, "coverage", tmp_path / "empty", "--json")
    assert ran.code == 2
    assert f"no ONNX model in {tmp_path / 'empty'}" in ran.result["error"]["what"]


def test_a_report_that_cannot_be_written_is_told_before_anything_is_read(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("models are read")

    monkeypatch.setattr(coverage, "run_tool", refuse)
    arguments = [str(models), "--report", str(models / "b.onnx" / "page")]
    with pytest.raises(UsageError, match="cannot be written: Not a directory"):
        coverage.command.main(arguments, standalone_mode=False)


class Page(HTMLParser):
    """What matters of a page: its tags balance, what it links to, the titles in its map."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.titles: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.ids: Counter[str] = Counter()
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [str(given[name]) for name in ("src", "href", "xlink:href") if name in given]
        self.ids.update([str(given["id"])] if "id" in given else [])
        if given.get("role") == "img":
            self.images.append(given)
        if tag not in ("meta", "br", "link", "img"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "title":
            self.titles.append(data)


def test_the_page(result: dict[str, Any]) -> None:
    text = page.html(result)
    check_golden("index.html", text)
    seen = Page(text)
    assert seen.links == []
    assert not re.search(r"https?://|@import", text)
    assert max(seen.ids.values()) == 1
    assert "cases/&lt;b&gt;.onnx" in text
    assert len(seen.images) == 5
    for image in seen.images:
        assert image.get("aria-label") or all(seen.ids[one] for one in str(image["aria-labelledby"]).split())


def test_every_pair_has_its_count_in_the_map(result: dict[str, Any]) -> None:
    titles = [one for one in Page(page.html(result)).titles if "→" in one]
    assert len(titles) == 36
    assert f"Relu → Add: {result['pairs']['Relu']['Add']}" in titles
    assert "Abs → Flatten: never" in titles


def test_the_written_page_is_whole(ran: CommandResult, models: Path) -> None:
    assert sorted(path.name for path in (models / "page").iterdir()) == ["index.html"]
    text = (models / "page" / "index.html").read_text(encoding="utf-8")
    assert "5 of 6 operators met, 7 of 36 pairs of them" in text
    Page(text)


def test_a_page_of_nothing(result: dict[str, Any]) -> None:
    tally, _ = build_tally(SIX)
    Page(page.html(to_json(tally) | {"broken": 0, "seconds": 0.0, "left_out": []}))


def test_sets_of_many_operators_are_drawn_in_part() -> None:
    one = {"nodes": 1, "allowed": [1], "in_degrees": 1}
    many = {f"Op{at}": one | {"nodes": at} for at in range(page.MAX_DRAWN + 40)}
    heatmap = page.build_heatmap({"by_operator": many, "pairs": {"Op119": {"Op118": 3}, "Op0": {"Op1": 1}}})
    assert len(heatmap.rows) == len(heatmap.columns) == page.MAX_DRAWN
    assert {row.producer for row in heatmap.rows} == {f"Op{at}" for at in range(40, page.MAX_DRAWN + 40)}
    assert heatmap.operators == page.MAX_DRAWN + 40


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.0, "share", "100.00 %"),
        (0.99999, "share", "99.99 %"),
        (0.929487, "share", "92.95 %"),
        (0.0, "share", "0.00 %"),
        (0.00009457, "share", "0.00946 %"),
        (0.000000001234, "share", "0.000000123 %"),
        (1234.567, "count", "1,234.57"),
        (0.0, "count", "0.00"),
    ],
)
def test_figures_for_people(value: float, unit: str, text: str) -> None:
    assert format_metric({"value": value, "unit": unit}) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999"), (1000, "1k"), (12345, "12.3k"), (999_949, "1M"), (1_234_567, "1.23M"), (10**9, "1G")],
)
def test_counts_above_bars_are_short(count: int, text: str) -> None:
    assert page.Bar("", count, 1.0, 0, 0).short == text


@given(st.integers(1, 10**7), st.data())
def test_shades_part_the_counts(largest: int, data: st.DataObject) -> None:
    shades = list(page._shades(largest))
    assert (shades[0].low, shades[-1].high) == (1, largest)
    assert all(a.high + 1 == b.low and a.step < b.step for a, b in pairwise(shades))
    count = data.draw(st.integers(1, largest))
    [shade] = [one for one in shades if one.low <= count <= one.high]
    assert shade.step == page.shade_index(count, largest)
    assert page.shade_index(0, largest) == 0


@given(st.dictionaries(st.integers(0, 10**5), st.integers(1, 9)))
def test_ranges_hold_every_model_once(counts: dict[int, int]) -> None:
    bins = page.bin_counts({str(nodes): models for nodes, models in counts.items()})
    assert len(bins) <= page.MAX_BARS
    assert sum(models for _, models in bins) == sum(counts.values())
    if counts:
        assert 0 not in (bins[0][1], bins[-1][1])


@pytest.mark.compiler_onnxruntime
def test_attributes_that_cases_exercise_on_a_compiler(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) { y = Elu<alpha = 2.0>(x) }'
    )
    inputs = (("x", Tensor.of(np.array([-1, 1], np.float32))),)
    origin = Provenance("t", "t", "", "onnx", "")
    Corpus(tmp_path).add(TestCase(OnnxModel(model.SerializeToString()), inputs, origin))
    wanted = ("--attributes", "--backend", "onnxruntime")
    found = assay(tmp_path / "data", "coverage", tmp_path, *wanted, "--json").result
    assert found["counts"]["exercised"] == 1
    [cell] = [one for one in found["cells"] if one["status"] == "exercised"]
    assert (cell["operator"], cell["attribute"], cell["class"]) == ("Elu", "alpha", "given")


def test_attributes_need_a_compiler(tmp_path: Path) -> None:
    found = assay(tmp_path / "data", "coverage", tmp_path, "--attributes")
    assert found.code == 2
    assert "--backend" in found.err


@pytest.mark.parametrize("option", [("--jobs", "2"), ("--operators", "isra"), ("--report", "pages")])
def test_attributes_take_no_option_of_metrics(tmp_path: Path, option: tuple[str, str]) -> None:
    found = assay(
        tmp_path / "data", "coverage", tmp_path, "--attributes", "--backend", "onnxruntime", *option
    )
    assert (found.code, f"{option[0]} is for metrics" in found.err) == (2, True)
