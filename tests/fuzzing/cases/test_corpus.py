from __future__ import annotations

import itertools
import multiprocessing
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fuzzing.cases import Corpus, OnnxModel, Provenance, Tensor, TestCase, read_case, write_case
from fuzzing.cases.corpus import MAX_MANIFEST_BYTES
from fuzzing.errors import CaseFormatError, UsageError


def make(number: int) -> TestCase:
    return TestCase(
        program=OnnxModel(b"model %d" % number),
        inputs=(("x", Tensor.of(np.arange(number % 5))),),
        provenance=Provenance("test", f"test_{number}", "Relu", "onnx", "1"),
        expected=(),
    )


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path / "corpus")


def test_a_case_comes_back(corpus: Corpus) -> None:
    case = make(1)
    assert corpus.add(case)
    assert corpus.get(case.id) == case
    assert read_case(corpus.folder(case.id)) == case
    for name, data in case.files().items():
        assert (corpus.folder(case.id) / name).read_bytes() == data


def test_a_second_write_changes_nothing(corpus: Corpus) -> None:
    case = make(1)
    corpus.add(case)
    before = (corpus.folder(case.id) / "case.json").stat().st_mtime_ns
    assert not corpus.add(case)
    assert (corpus.folder(case.id) / "case.json").stat().st_mtime_ns == before


def test_ids_are_sorted_and_streamed(corpus: Corpus) -> None:
    wanted = sorted(make(number).id for number in range(40))
    for number in range(40):
        corpus.add(make(number))
    ids = corpus.ids()
    assert next(ids) == wanted[0]
    for case_id in wanted[5:]:  # what is removed while reading is not read again
        for file in corpus.folder(case_id).iterdir():
            file.unlink()
        corpus.folder(case_id).rmdir()
    assert set(ids) <= set(wanted[1:])


def test_an_empty_corpus_has_no_cases(corpus: Corpus) -> None:
    assert list(corpus) == []
    assert corpus.sweep() == 0


def test_iterating_gives_the_cases(corpus: Corpus) -> None:
    made = sorted((make(number) for number in range(5)), key=lambda case: case.id)
    for case in made:
        corpus.add(case)
    assert list(corpus) == made


def test_strange_files_are_no_cases(corpus: Corpus) -> None:
    case = make(1)
    corpus.add(case)
    (corpus.root / "README").write_text("hello")
    (corpus.root / case.id[:2] / "notes.txt").write_text("hello")
    (corpus.root / case.id[:2] / f"{case.id}.bak").mkdir()
    assert list(corpus.ids()) == [case.id]
    assert corpus.find(case.id[:8]) == case.id


def test_find(corpus: Corpus) -> None:
    for number in range(300):
        corpus.add(make(number))
    case = make(0)
    assert corpus.find(case.id) == case.id
    assert corpus.find(case.id[:16]) == case.id
    with pytest.raises(UsageError, match="0 cases"):
        corpus.find("f" * 64)


def test_find_refuses_what_is_ambiguous(corpus: Corpus) -> None:
    shelf = corpus.root / "ab"
    for last in "12":
        (shelf / ("abcd" + "0" * 59 + last)).mkdir(parents=True)
    with pytest.raises(UsageError, match="2 cases"):
        corpus.find("abcd0")


@pytest.mark.parametrize("prefix", ["", "abc", "ABCD", "../..", "ab*d", "g" * 8, "a" * 65])
def test_find_refuses_what_is_no_prefix(corpus: Corpus, prefix: str) -> None:
    with pytest.raises(UsageError, match="not the beginning"):
        corpus.find(prefix)


@pytest.mark.parametrize("case_id", ["", "abc", "../../etc/passwd", "A" * 64, "a" * 64 + "\n"])
def test_an_id_names_no_other_folder(corpus: Corpus, case_id: str) -> None:
    with pytest.raises(UsageError, match="not a case id"):
        corpus.get(case_id)


def test_a_case_in_anothers_place_is_refused(corpus: Corpus) -> None:
    write_case(make(1), corpus.folder(make(2).id))
    with pytest.raises(CaseFormatError, match=make(1).id):
        corpus.get(make(2).id)


def test_every_flipped_bit_of_the_program_is_found(corpus: Corpus) -> None:
    case = make(1)
    corpus.add(case)
    file = corpus.folder(case.id) / "model.onnx"
    whole = file.read_bytes()
    for at, bit in itertools.product(range(len(whole)), range(8)):
        file.write_bytes(bytes(byte ^ (1 << bit if at == i else 0) for i, byte in enumerate(whole)))
        with pytest.raises(CaseFormatError, match="not what case"):
            corpus.get(case.id)


def test_every_flipped_bit_of_the_manifest_is_found(corpus: Corpus) -> None:
    """Provenance is no part of the identity, so a flip there gives the same case or is refused."""
    case = make(1)
    corpus.add(case)
    file = corpus.folder(case.id) / "case.json"
    whole = file.read_bytes()
    provenance = range(whole.index(b'"provenance"'), len(whole))
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            assert corpus.get(case.id).id == case.id
        except CaseFormatError:
            continue
        assert at in provenance or chr(whole[at]).isspace()


def test_every_truncation_of_the_program_is_found(corpus: Corpus) -> None:
    case = make(1)
    corpus.add(case)
    file = corpus.folder(case.id) / "model.onnx"
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(CaseFormatError):
            corpus.get(case.id)


def _symlink(path: Path) -> None:
    elsewhere = path.with_name("elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _socket(path: Path) -> None:
    path.unlink()
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path may have 108 bytes only
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def _device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("name", ["case.json", "model.onnx"])
@pytest.mark.parametrize("replace", [_symlink, _fifo, _directory, _socket, _device, Path.unlink])
def test_only_regular_files_are_read(corpus: Corpus, name: str, replace: Callable[[Path], None]) -> None:
    case = make(1)
    corpus.add(case)
    replace(corpus.folder(case.id) / name)
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(CaseFormatError, match=name):
        corpus.get(case.id)
    assert len(os.listdir("/proc/self/fd")) <= descriptors  # less, where another test's are collected


@pytest.mark.parametrize("name", ["case.json", "model.onnx"])
def test_huge_files_are_not_read(corpus: Corpus, name: str) -> None:
    case = make(1)
    corpus.add(case)
    with open(corpus.folder(case.id) / name, "ab") as file:
        file.truncate(MAX_MANIFEST_BYTES + 2)  # sparse: takes no room
    with pytest.raises(CaseFormatError, match="larger than"):
        corpus.get(case.id)


def _add_all(root: Path, start: int, count: int) -> None:
    corpus = Corpus(root)
    for number in range(count):
        corpus.add(make((start + number) % count))


def test_writers_may_race(corpus: Corpus) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_add_all, args=(corpus.root, start, 60)) for start in (0, 1, 30)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(300)
        assert writer.exitcode == 0
    assert {case.id for case in corpus} == {make(number).id for number in range(60)}
    assert corpus.sweep() == 0


def _write_and_die(root: Path, at: int) -> None:
    """Adds a case; dies at the `at`-th thing it asks of the system."""
    steps = itertools.count(1)

    def step(event: str, _args: object) -> None:
        if event.startswith(("open", "os.", "tempfile.")) and next(steps) == at:
            os._exit(9)  # like SIGKILL: nothing is cleaned up

    code = 1  # whatever happens, the child must not go on as a second test run
    try:
        sys.addaudithook(step)
        Corpus(root).add(make(1))
        code = 0
    finally:
        os._exit(code)


def test_a_writer_killed_at_any_step_leaves_no_half_case(corpus: Corpus) -> None:
    case = make(1)
    deaths = 0
    for step in range(1, 200):
        child = os.fork()
        if child == 0:
            _write_and_die(corpus.root, step)
        _, status = os.waitpid(child, 0)
        if corpus.folder(case.id).exists():
            assert corpus.get(case.id) == case
        if os.waitstatus_to_exitcode(status) == 0:
            break
        assert os.waitstatus_to_exitcode(status) == 9
        deaths += 1
    assert 4 <= deaths < 199  # a folder, two files and a rename at least
    assert corpus.sweep() > 0
    assert list(corpus.ids()) == [case.id]
    assert not list(corpus.root.glob("*/.incoming-*"))
