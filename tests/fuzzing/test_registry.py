"""Registries of things that the files of a package register."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fuzzing.errors import UnknownNameError
from fuzzing.registry import Registry


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[str]:
    """A package of pets: two in files that are called as they are, one in a file that is not, one below."""
    files = {
        "__init__": 'from fuzzing.registry import Registry\nPETS: Registry[str] = Registry("pet", __name__)',
        "__main__": "raise SystemExit(1)",
        "cat": 'from pets import PETS\nPETS.add("meow", "cat")',
        "dog": 'from pets import PETS\nPETS.add("woof", "dog", "hound")',
        "others": 'from pets import PETS\nPETS.add("tweet", "bird")',
        "wild/__init__": "",
        "wild/wolf": 'from pets import PETS\nPETS.add("howl", "wolf")',
    }
    for name, text in files.items():
        path = tmp_path / "pets" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pets"]:
        monkeypatch.delitem(sys.modules, name)
    import pets  # type: ignore[import-not-found]

    found: Registry[str] = pets.PETS
    return found


def imported() -> set[str]:
    return {name for name in sys.modules if name.startswith("pets.")}


def test_the_file_of_that_name_is_the_only_one_imported(pets: Registry[str]) -> None:
    assert pets.get("cat") == "meow"
    assert imported() == {"pets.cat"}


def test_a_name_that_is_no_files_is_looked_for_in_all(pets: Registry[str]) -> None:
    assert pets.get("bird") == "tweet"
    assert pets.get("hound") == pets.get("dog") == "woof"
    assert imported() == {"pets.cat", "pets.dog", "pets.others", "pets.wild"}


def test_all_names_and_those_of_packages_below_if_they_count(pets: Registry[str]) -> None:
    assert pets.names() == ("bird", "cat", "dog", "hound")
    deep: Registry[str] = Registry("pet", "pets", deep=True)
    assert deep.names() == ()
    assert pets.names() == ("bird", "cat", "dog", "hound", "wolf")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("hund", "did you mean 'hound'? "),
        ("fish", ""),
        ("__main__", ""),
        ("wild", ""),
        ("../cat", ""),
        ("", ""),
    ],
)
def test_a_wrong_name_lists_the_right_ones(pets: Registry[str], name: str, hint: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        pets.get(name)
    assert str(caught.value) == f"no pet is called {name!r}; {hint}there are: bird, cat, dog, hound"


def test_the_last_one_of_a_name_counts(pets: Registry[str]) -> None:
    pets.get("cat")
    pets.add("purr", "cat")
    assert pets.get("cat") == "purr"


def test_a_decorator_registers_under_several_names(pets: Registry[str]) -> None:
    assert pets.register("cow", "ox")("moo") == "moo"
    assert (pets.find("cow"), pets.find("ox"), pets.find("fish")) == ("moo", "moo", None)
