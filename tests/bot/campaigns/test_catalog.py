from __future__ import annotations

import importlib.metadata
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fuzzing
from bot.campaigns.campaign_queue import BACKOFF_S
from bot.campaigns.plan import catalog as catalogs
from bot.campaigns.plan.case_source import SourceReport, distinct
from bot.campaigns.plan.collection import Collector
from bot.campaigns.provenance import origin
from bot.errors import InfrastructureError, UsageError
from bot.reports.plan_summary import describe_source_state
from tests.bot.campaigns import fakes
from tests.bot.campaigns.conftest import World


def files(world: World) -> list[Path]:
    return sorted((world.settings.data_dir / "corpus" / "catalogs").iterdir())


def install(site: Path, name: str) -> None:
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")


def test_a_source_is_migrated_once_for_what_is_installed(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.push()
    world.run()
    world.push(head="2" + "b" * 39)
    world.run()
    assert world.tools.calls.count("fuzzing.migrate") == 1
    install(tmp_path / "site", "another")
    monkeypatch.setattr(catalogs, "_site_folders", lambda: [str(tmp_path / "site")])
    world.push(head="2" + "c" * 39)
    world.run()
    assert world.tools.calls.count("fuzzing.migrate") == 2
    assert len(files(world)) == 2


def test_what_a_process_puts_on_its_path_makes_no_other_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = catalogs.catalog_path(tmp_path, "onnx-node-tests")
    install(tmp_path / "_vendor", "vendored")
    monkeypatch.syspath_prepend(str(tmp_path / "_vendor"))
    assert "vendored" in {one.name for one in importlib.metadata.distributions()}
    assert catalogs.catalog_path(tmp_path, "onnx-node-tests") == installed


def test_what_is_installed_later_makes_another_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    install(site, "one")
    os.utime(site, (1, 1))
    monkeypatch.setattr(catalogs, "_site_folders", lambda: [str(site), str(tmp_path / "absent")])
    before = catalogs.catalog_path(tmp_path, "onnx-node-tests")
    install(site, "two")
    assert catalogs.catalog_path(tmp_path, "onnx-node-tests") != before


def test_a_package_that_is_half_installed_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    install(site, "one")
    metadata = site / "two-1.0.dist-info" / "METADATA"
    metadata.parent.mkdir()  # pip fills the folder after it has made it
    monkeypatch.setattr(catalogs, "_site_folders", lambda: [str(site)])
    before = catalogs.catalog_path(tmp_path, "onnx-node-tests")
    metadata.write_text("Metadata-Version: 2.1\nName: two\nVersion: 1.0\n")
    assert catalogs.catalog_path(tmp_path, "onnx-node-tests") != before


def test_code_that_changes_makes_another_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = tmp_path / "fuzzing" / "migrate" / "one.py"
    code.parent.mkdir(parents=True)
    code.write_text("1")
    os.utime(code, (1, 1))
    monkeypatch.setattr(fuzzing, "__path__", [str(tmp_path / "fuzzing")])
    before = catalogs.catalog_path(tmp_path, "onnx-node-tests")
    code.write_text("2")
    assert catalogs.catalog_path(tmp_path, "onnx-node-tests") != before


def test_another_model_of_the_user_makes_another_catalog(tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()

    def path() -> Path:
        [part] = catalogs.SourceCatalog(tmp_path, "graph-search", ("--models", str(models))).parts()
        return part.path

    first = path()
    assert path() == first
    (models / "a.onnx").write_bytes(b"one")
    second = path()
    assert second != first
    (models / "a.onnx").write_bytes(b"three")
    assert path() not in (first, second)


def test_the_record_of_a_search_is_kept(tmp_path: Path) -> None:
    record = {"models": 1, "curve": [0.5], "tree": [[-1, "", 1, 0.5]], "ablation": {}}

    def run_tool(module: str, args: Sequence[str], on_event: Any, stop: threading.Event) -> None:
        on_event({"event": "case", "id": fakes.IDS["Abs_fine"]})
        on_event({"event": "search", **record})
        on_event({"event": "end", "cases": 1, "skipped": {}, "library": "onnx", "version": "1"})

    catalog = catalogs.SourceCatalog(tmp_path, "graph-search")
    collector = Collector(tmp_path, run_tool, 1, lambda: 0.0)
    collector.collect(catalog.parts(), None, lambda _event: None, threading.Event())
    account = catalog.account()
    assert (account.cases, account.search) == (1, record)
    assert list(catalog.cases()) == [fakes.IDS["Abs_fine"]]


def test_a_migration_that_breaks_off_leaves_no_catalogue(world: World) -> None:
    def run_tool(module: str, args: Sequence[str], on_event: Any, stop: threading.Event) -> None:
        on_event({"event": "case", "id": fakes.IDS["Abs_fine"]})

    world.use(run_tool=run_tool)
    campaign_id = world.push()
    for wait in (*BACKOFF_S, 0):
        world.run()
        world.clock.advance(wait)
    assert "the migration of standin-tests ended without an end event" in world.campaign(campaign_id).reason
    assert files(world) == []


def test_a_source_cannot_name_a_path(world: World) -> None:
    config = fakes.PlainConfig(sources=("../../etc/passwd",))
    text = fakes.to_bytes(config)
    world.repositories.files["2" * 40] = {fakes.CONFIG: text}
    campaign_id = world.push()
    world.run()
    assert "cannot be the name of a source" in world.campaign(campaign_id).reason
    assert world.tools.calls == []


SOME = st.lists(st.sampled_from([f"{n:064x}" for n in range(0, 1 << 255, 1 << 251)]))


@given(SOME, SOME)
def test_distinct_keeps_the_first_of_each_in_order(ids: list[str], known: list[str]) -> None:
    assert list(distinct(ids)) == list(dict.fromkeys(ids))
    assert list(distinct(ids, known)) == [one for one in dict.fromkeys(ids) if one not in known]


def test_every_part_of_the_code_that_makes_cases_exists() -> None:
    """A renamed file would drop out of the fingerprint of a catalog unnoticed."""
    root = Path(fuzzing.__file__).parent
    assert [part for part in catalogs._CODE if not any(catalogs._files(root, part))] == []


def test_an_origin_is_read_from_the_manifest_alone(tmp_path: Path) -> None:
    fakes.write_corpus(tmp_path)
    case_id = fakes.IDS["Add_regressed"]
    (tmp_path / case_id[:2] / case_id / "model.onnx").unlink()
    found = origin(tmp_path, case_id)
    assert (found.source, found.test, found.operator) == ("standin-tests", "Add_regressed", "Add")
    assert found.size == len(b"Add_regressed")


def test_a_lost_case_is_trouble_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match=r"delete .*catalogs"):
        origin(tmp_path, "a" * 64)


def test_the_cases_of_a_folder_by_kind(tmp_path: Path) -> None:
    fakes.write_corpus(tmp_path)
    folder = catalogs.CorpusCases(tmp_path, ["OnnxModel"])
    assert list(folder.cases()) == sorted(fakes.IDS.values())
    assert folder.account() == SourceReport(tmp_path.name, cases=len(fakes.IDS))
    assert folder.arguments() == ["--corpus", str(tmp_path)]
    assert folder.parts() == ()
    others = catalogs.CorpusCases(tmp_path, ["TorchCall"])
    with pytest.raises(UsageError, match=f"no case of kind TorchCall, but {len(fakes.IDS)} cases of other"):
        list(others.cases())
    assert others.account().skipped == {"a program of kind OnnxModel": len(fakes.IDS)}
    with pytest.raises(UsageError, match="holds no case of kind TorchCall; name a corpus"):
        list(catalogs.CorpusCases(tmp_path / "nowhere", ["TorchCall"]).cases())


def test_a_case_of_several_parts_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogs, "source_parts", lambda _source: 2)
    source = catalogs.SourceCatalog(tmp_path, "standin-tests")
    ids = list(fakes.IDS.values())[:3]
    for part, held in zip(source.parts(), (ids[:2], ids[1:]), strict=True):
        part.path.parent.mkdir(parents=True, exist_ok=True)
        part.path.write_text("".join(f'{{"id": "{case_id}"}}\n' for case_id in held))
    assert source.account().cases == 3


def test_each_seed_of_a_generated_source_has_a_catalog(tmp_path: Path) -> None:
    given = [catalogs.SourceCatalog(tmp_path, "isra", options) for options in ((), ("--seed", "7"))]
    plain, seeded = (source.parts()[0] for source in given)
    assert plain.path != seeded.path
    assert (plain.options, seeded.options) == ((), ("--seed", "7"))
    assert [source.account().seed for source in given] == [0, 7]
    assert describe_source_state(given[1].account()).startswith("seed 7")
    assert SourceReport.from_json(given[1].account().to_json()) == given[1].account()
    fixed = catalogs.SourceCatalog(tmp_path, "onnx-node-tests").account()
    assert "seed" not in fixed.to_json()
