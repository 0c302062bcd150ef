"""Corpora in an object store (moto's S3 server) and in a folder."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from bot import corpus_store
from bot.cli.corpora.corpus import command
from bot.corpus_store import CorpusStore
from bot.errors import InfrastructureError, UsageError
from fuzzing.cases import Corpus
from fuzzing.errors import CaseFormatError
from tests.bot.runners.pool_helpers import add_cases
from tests.support.object_store import Store, serving


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with serving(monkeypatch) as made:
        yield made


@pytest.fixture(params=["folder", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(corpus_store, "PACK_CASES", 4)
    if request.param == "folder":
        return str(tmp_path / "there" / "corpus")
    request.getfixturevalue("store")
    return "s3://reports/corpus"


def copy(*arguments: str) -> int:
    result = CliRunner().invoke(
        command, [*arguments, "--json"], catch_exceptions=False, standalone_mode=False
    )
    [count] = (value for value in json.loads(result.stdout).values() if isinstance(value, int))
    return int(count)


def test_each_case_is_copied_once_there_and_back(url: str, tmp_path: Path) -> None:
    first, second, empty = (Corpus(tmp_path / name) for name in ("first", "second", "empty"))
    add_cases(first.root, 6, wrong=0)
    add_cases(second.root, 10, wrong=0)
    assert copy("export", url, "--corpus", str(first.root)) == 6
    assert copy("export", url, "--corpus", str(second.root)) == 4
    assert copy("export", url, "--corpus", str(second.root)) == 0
    assert copy("import", url, "--corpus", str(first.root)) == 4
    assert copy("import", url, "--corpus", str(empty.root)) == 10
    assert [case.files() for case in empty] == [case.files() for case in second]


def test_a_case_of_another_content_is_refused(url: str, tmp_path: Path) -> None:
    corpus = Corpus(add_cases(tmp_path / "cases", 1, wrong=0))
    [case] = corpus.ids()
    store, other = CorpusStore(url), "f" * 64
    pack = corpus_store._pack(corpus, [case])
    store._write([other], pack)
    with pytest.raises(UsageError, match="lacks 1 of its cases"):
        store.import_cases(Corpus(tmp_path / "new"))


def test_a_case_that_was_changed_in_a_pack_is_refused(tmp_path: Path) -> None:
    corpus = Corpus(add_cases(tmp_path / "cases", 2, wrong=0))
    first, second = corpus.ids()
    store = CorpusStore(str(tmp_path / "there"))
    manifest = corpus.folder(first) / "case.json"
    there = manifest.read_text()
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for case_id, text in ((first, there.replace('"values"', '"shapes"')), (second, there)):
            for name, content in (("case.json", text.encode()), ("model.onnx", b"x")):
                member = tarfile.TarInfo(f"{case_id}/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    store._write([first, second], made.getvalue())
    with pytest.raises(CaseFormatError, match=f"case {first} of a pack: the content has the id"):
        store.import_cases(Corpus(tmp_path / "new"))
    assert not list(Corpus(tmp_path / "new").ids())


def test_a_killed_export_leaves_no_case_that_cannot_be_read(store: Store, tmp_path: Path) -> None:
    add_cases(tmp_path / "cases", 2, wrong=0)
    there = CorpusStore("s3://reports/corpus")
    there.export_cases(Corpus(tmp_path / "cases"))
    kept = store.keys()
    [listed] = [key for key in kept if key.endswith(".ids")]
    store.client.delete_object(Bucket="reports", Key=listed)
    with pytest.raises(UsageError, match="there are no cases at s3://reports/corpus"):
        there.import_cases(Corpus(tmp_path / "new"))
    assert there.export_cases(Corpus(tmp_path / "cases")) == 2
    assert there.import_cases(Corpus(tmp_path / "new")) == 2


def test_a_store_that_does_not_answer_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    add_cases(tmp_path / "cases", 1, wrong=0)
    with pytest.raises(InfrastructureError, match="check the URL"):
        CorpusStore(f"{tmp_path}/file/below").export_cases(Corpus(tmp_path / "cases"))
