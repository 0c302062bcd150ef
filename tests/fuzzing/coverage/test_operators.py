"""Operator sets: Isra's table, the installed onnx's, files of the user's."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import onnx.defs
import pytest

from fuzzing.coverage import OperatorSet, operators
from fuzzing.errors import UnknownNameError, UsageError


def test_isras_table() -> None:
    isra = operators.get("isra")
    assert len(isra) == 65
    assert list(isra.in_degrees) == sorted(isra.in_degrees)
    kinds = Counter(tuple(sorted(degrees)) for degrees in isra.in_degrees.values())
    assert kinds == {
        (1,): 40,
        (2,): 12,
        (1, 2): 2,
        (2, 3): 2,
        (2, 3, 4): 1,
        (3, 4, 5): 1,
        (1, 2, 3, 4): 1,
        (1, 2, 3, 4, 5): 5,
        (5,): 1,
    }
    assert all(onnx.defs.has(name) for name in isra.in_degrees)


def test_every_operator_that_onnx_defines() -> None:
    known = operators.get("onnx").in_degrees
    assert known["Concat"] == {1, 2, 3, 4, 5}
    assert known["QLinearConv"] == {8, 9}  # more than five, as they are not any number
    assert known["Constant"] == {0}
    assert known["Conv"] == {2, 3}
    assert "Upsample" not in known  # deprecated
    assert set(operators.get("isra").in_degrees) <= set(known)


def test_what_our_own_generators_can_make_is_what_onnx_allows() -> None:
    known = operators.get("onnx").in_degrees
    specified = operators.get("specified").in_degrees
    assert len(specified) >= 60
    for name, degrees in specified.items():
        assert degrees <= known[name], name


def test_in_degrees_are_limited_by_what_is_allowed() -> None:
    some = OperatorSet("some", {"Sum": frozenset({2, 3}), "QLinearConv": frozenset({8, 9})})
    assert [some.in_degree("Sum", n) for n in (1, 2, 5, 6)] == [2, 2, 5, 5]
    assert [some.in_degree("QLinearConv", n) for n in (5, 8, 9, 12)] == [8, 8, 9, 9]


def test_a_file_of_operators(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("# mine\nConcat\nAdd 2\n\ncom.example::Gelu 1 2   # ours\n")
    found = operators.get(str(path))
    assert found == OperatorSet(
        "mine.txt",
        {"Concat": frozenset(range(1, 6)), "Add": frozenset({2}), "com.example::Gelu": frozenset({1, 2})},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Add\nGelou\n", "mine.txt:2: ONNX's default domain has no operator Gelou; write its in-degrees"),
        ("Add two\n", "mine.txt:1: in-degrees are whole numbers from 0, such as 1 2, not two"),
        ("Add -1\n", "mine.txt:1: in-degrees are whole numbers"),
        ("# nothing\n", "names no operator; write one a line"),
        ("\udcff", "cannot be read"),
    ],
)
def test_files_that_cannot_be_used_say_why(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UsageError, match=message):
        operators.get(str(path))


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match=r"there are: .*isra.*onnx"):
        operators.get("izra")


def test_a_set_is_registered_by_its_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    known = operators._SETS
    monkeypatch.setattr(known, "_entries", dict(known._entries))
    operators.register_operators("tiny")(lambda: {"Relu": frozenset({1})})
    assert "tiny" in operators.names()
    assert operators.get("tiny").in_degrees == {"Relu": frozenset({1})}


def test_sets_go_to_other_processes_and_cannot_be_changed() -> None:
    isra = operators.get("isra")
    again = pickle.loads(pickle.dumps(isra))
    assert again == isra
    assert again.in_degree("Sum", 9) == 5
    with pytest.raises(TypeError):
        isra.in_degrees["Relu"] = frozenset({1})  # type: ignore[index]
    with pytest.raises(ValueError, match="at least one in-degree"):
        OperatorSet("empty", {"Relu": frozenset()})
