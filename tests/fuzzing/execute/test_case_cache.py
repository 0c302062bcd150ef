"""Cases kept in a form that is read quickly: the same cases, whatever befalls the records."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import backends
from fuzzing.cases import Absent, Corpus, OnnxModel, Provenance, Recipe, Sequence, Tensor, TestCase, Value
from fuzzing.errors import CaseFormatError, UsageError
from fuzzing.execute.answer_parser import parse_execution
from fuzzing.execute.batches import Answer, AnswerBatch, encode_request, parse_answers
from fuzzing.execute.case_cache import CachedCase, CaseCache, cached_request
from fuzzing.execute.protocol import FrameReader, encode_values
from fuzzing.execution import Execution, MatchingExecution
from fuzzing.oracles import decide_outcome
from tests.fuzzing.cases.strategies import cases, names, values


def make(**changes: object) -> TestCase:
    case = TestCase(
        OnnxModel(b"a model"),
        (
            ("drawn", Recipe("uniform", "float32", (2, 3), 0.0, 1.0, 7)),
            ("x", Tensor.of(np.arange(6, dtype=np.float32))),
        ),
        Provenance("test", "test_it", "Relu", "onnx", "1", 3),
        expected=(("y", Tensor.of(np.ones(3))), ("s", Sequence((Tensor.of(np.zeros(2)),))), ("n", Absent())),
    )
    return replace(case, **changes)  # type: ignore[arg-type]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path / "corpus")


def case_cache(corpus: Corpus, case: TestCase) -> CachedCase:
    """The case, of its record."""
    corpus.add(case)
    CaseCache(corpus).get(case.id)
    found = CaseCache(corpus).get(case.id)
    assert isinstance(found, CachedCase)
    return found


def same(got: TestCase, case: TestCase) -> None:
    """Asks for the fields last: what they are read from is looked at first."""
    assert got.id == case.id
    assert got.has_reference == case.has_reference
    assert cached_request(got) == encode_request(case)
    assert (got, case) == (case, got)
    assert got.files() == case.files()


@given(cases())
def test_a_case_is_the_same_from_the_corpus_and_from_its_record(case: TestCase) -> None:
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(folder)
        same(case_cache(corpus, case), case)
        assert list(corpus.ids()) == [case.id]  # records are no cases


def test_a_record_needs_the_files_no_more(corpus: Corpus) -> None:
    case = make()
    case_cache(corpus, case)
    shutil.rmtree(corpus.folder(case.id))
    same(CaseCache(corpus).get(case.id), case)


def test_a_case_that_is_changed_is_another(corpus: Corpus) -> None:
    found = case_cache(corpus, make())
    inputs = (("x", Tensor.of(np.zeros(6, np.float32))),)
    changed = replace(found, inputs=inputs, expected=None)
    assert changed.id == make(inputs=inputs, expected=None).id
    assert not changed.has_reference
    assert cached_request(changed) == encode_request(make(inputs=inputs))
    assert found == make()


def test_cases_differ_by_any_field(corpus: Corpus) -> None:
    found = case_cache(corpus, make())
    assert found != make(comparison="shapes")
    assert found != make(provenance=Provenance("other", "", "", "", ""))
    assert found != "a case"
    assert hash(found) == hash(make())


def test_what_is_wrong_with_a_case_is_found_and_not_kept(corpus: Corpus) -> None:
    case = make()
    corpus.add(case)
    (corpus.folder(case.id) / "model.onnx").write_bytes(b"other")
    with pytest.raises(CaseFormatError, match="not what case"):
        CaseCache(corpus).get(case.id)
    with pytest.raises(CaseFormatError, match="not what case"):
        CaseCache(corpus).get(case.id)


def test_a_case_may_be_asked_for_again_by_the_run_that_kept_it(corpus: Corpus) -> None:
    case = make()
    corpus.add(case)
    store = CaseCache(corpus)
    store.get(case.id)
    found = store.get(case.id)
    assert isinstance(found, CachedCase)
    same(found, case)


def test_a_case_is_kept_with_those_whose_ids_begin_as_its_own(corpus: Corpus) -> None:
    made = [make(inputs=(("x", Tensor.of(np.full(3, number))),)) for number in range(40)]
    for case in made:
        corpus.add(case)
    store = CaseCache(corpus)
    for case in made:
        store.get(case.id)
    packs = {pack.name: pack for pack in (corpus.root / ".prepared" / "4").iterdir()}
    assert packs.keys() == {case.id[0] for case in made}
    for name in packs.keys() - {made[0].id[0]}:
        packs[name].unlink()
    found = CaseCache(corpus).get(made[0].id)
    assert isinstance(found, CachedCase)
    same(found, made[0])
    assert len(list((corpus.root / ".prepared" / "4").iterdir())) == 1, "only its own was opened"


def test_records_that_are_damaged_are_made_anew(corpus: Corpus) -> None:
    case = make()
    case_cache(corpus, case)
    pack = corpus.root / ".prepared" / "4" / case.id[0]
    whole = pack.read_bytes()
    for at in range(0, len(whole), 5):
        pack.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        for _ in range(2):
            same(CaseCache(corpus).get(case.id), case)
        assert isinstance(CaseCache(corpus).get(case.id), CachedCase)


@pytest.mark.parametrize("case_id", ["", "abc", "../../etc/passwd", "a" * 64 + "\n"])
def test_an_id_names_no_other_file(corpus: Corpus, case_id: str) -> None:
    with pytest.raises(UsageError, match="not a case id"):
        CaseCache(corpus).get(case_id)


def test_where_none_can_be_written_there_is_none(corpus: Corpus) -> None:
    case = make()
    corpus.add(case)
    (corpus.root / ".prepared").write_text("in the way")
    for _ in range(2):
        same(CaseCache(corpus).get(case.id), case)


def test_where_there_is_no_corpus_none_is_made(tmp_path: Path) -> None:
    with pytest.raises(CaseFormatError):
        CaseCache(Corpus(tmp_path / "nowhere")).get("a" * 64)
    assert list(tmp_path.iterdir()) == []


def told(outputs: list[tuple[str, Value]]) -> Answer:
    """Outputs as they come through the pipe."""
    batch = AnswerBatch()
    batch.add(1, (1000, 2000, 3000), None, encode_values(outputs))
    [frame] = FrameReader().feed(batch.frame())
    [answer] = parse_answers(*frame)
    return answer


def run(case: TestCase, answer: Answer) -> Execution:
    return parse_execution(answer, case, 5, lambda _begin, _end: "")


@given(cases())
def test_outputs_as_expected_are_known_for_that(case: TestCase) -> None:
    answer = told(list(case.expected or ()))
    with tempfile.TemporaryDirectory() as folder:
        found = run(case_cache(Corpus(folder), case), answer)
        usual = run(case, answer)
    assert isinstance(found, MatchingExecution) == found.matches_expected == case.has_reference
    for name in vars(usual):
        assert getattr(found, name) == getattr(usual, name)
    assert found.count == usual.count == len(case.expected or ())


@given(cases())
def test_they_are_judged_as_if_they_had_been_compared(case: TestCase) -> None:
    answer, kind = told(list(case.expected or ())), backends.get("onnxruntime")
    with tempfile.TemporaryDirectory() as folder:
        found, usual = run(case_cache(Corpus(folder), case), answer), run(case, answer)
    assert decide_outcome(case, found, kind, "t", "CPU") == decide_outcome(case, usual, kind, "t", "CPU")


def test_a_field_is_read_without_those_that_stand_elsewhere(corpus: Corpus) -> None:
    found = case_cache(corpus, make())
    assert found.expected == make().expected
    assert not {"program", "inputs", "tolerance"} & set(vars(found))
    assert found.inputs == make().inputs
    assert "tolerance" not in vars(found)


@given(cases(), st.lists(st.tuples(names, values), max_size=2))
def test_other_outputs_are_not_taken_for_those_expected(
    case: TestCase, outputs: list[tuple[str, Value]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = run(case_cache(Corpus(folder), case), told(outputs))
    assert found.outputs == tuple(outputs)
    assert found.matches_expected == (case.expected == tuple(outputs))


def test_every_bit_counts(corpus: Corpus) -> None:
    case = make()
    [first, *others] = case.expected or ()
    assert isinstance(first[1], Tensor)
    zeros = Tensor("float64", (3,), bytes(24))
    found = case_cache(corpus, replace(case, expected=(("y", zeros), *others)))
    minus = Tensor("float64", (3,), bytes(23) + b"\x80")  # -0, which equals 0 and is not the same
    assert run(found, told([("y", zeros), *others])).matches_expected
    assert not run(found, told([("y", minus), *others])).matches_expected
    assert not run(found, told([("z", zeros), *others])).matches_expected
    assert not run(found, told([("y", zeros)])).matches_expected
    flat = Tensor("float64", (3, 1), bytes(24))
    assert not run(found, told([("y", flat), *others])).matches_expected
