"""ONNX models that somebody has as files: `python -m fuzzing.migrate.onnx_files --corpus DIR PATH…`.

A path is a model, or a folder in which models are looked for. The data that lies beside a model is its own,
where it lies as beside ONNX's tests and in its model zoo:

    FOLDER/model.onnx
    FOLDER/test_data_set_0/input_0.pb, output_0.pb, …

Any other model's inputs are drawn by recipe, the same ones each time. Prints what `fuzzing.migrate` prints;
a file that becomes no case is a skip, with the reason.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from fuzzing.cases import Corpus, OnnxModel, Provenance, TestCase
from fuzzing.cases.programs import MAX_PROGRAM_BYTES
from fuzzing.migrate import onnx_backend_tests, onnx_singles
from fuzzing.migrate.onnx_inputs import CannotDrawError
from fuzzing.migrate.onnx_singles import CannotTellError
from fuzzing.migrate.onnx_whole import whole_inputs
from fuzzing.migrate.randomness import draws_random_numbers
from fuzzing.migrate.sources import Skip, Source

if TYPE_CHECKING:
    from onnx import ModelProto

NAME = "onnx-files"
_RTOL, _ATOL = 1e-3, 1e-7  # what ONNX's own runner allows models with data (onnx.backend.test.loader)
SUFFIX = ".onnx"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    from fuzzing.migrate.__main__ import run
    from fuzzing.program import ended

    name = "python -m fuzzing.migrate.onnx_files"
    parser = argparse.ArgumentParser(prog=name, description="Make cases of ONNX models.")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a model, or a folder of them")
    parser.add_argument("--corpus", required=True, type=Path, help="the folder that keeps the cases")
    given = parser.parse_args(arguments)
    source = Source(NAME, onnx_backend_tests.LIBRARY, lambda: migrate(given.paths))
    return ended(parser.prog, lambda: run(source, Corpus(given.corpus)))


def migrate(paths: Sequence[Path]) -> Iterator[TestCase | Skip]:
    """The models at these places, by name; raises InfrastructureError where onnx is not installed."""
    with onnx_backend_tests.building(NAME):
        import onnx  # noqa: F401 - told now if it is missing
    for path in paths:
        folder = path if path.is_dir() else path.parent
        files = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
        alone = {place: len(list(place.glob(f"*{SUFFIX}"))) == 1 for place in {one.parent for one in files}}
        for file in files:
            yield from _cases(file, str(file.relative_to(folder)), alone=alone[file.parent])


def _cases(file: Path, name: str, *, alone: bool) -> Iterator[TestCase | Skip]:
    """A model's cases; `alone`: what lies beside it can only be its own."""
    import onnx
    from onnx.backend.test.case.test_case import TestCase as FileTest

    try:
        model = onnx.load(file)
        sets = onnx_backend_tests.data_sets(file.parent) if alone else []
    except Exception as error:  # noqa: BLE001 - protobuf's own, of files that may be anything
        yield Skip(name, "the file or what lies beside it is no ONNX", str(error)[:300])
        return
    if model.ByteSize() > MAX_PROGRAM_BYTES:
        yield Skip(name, f"the model has more than {MAX_PROGRAM_BYTES >> 20} MiB")
    elif sets:
        test = FileTest(name, name, None, None, model, sets, "real", _RTOL, _ATOL)
        yield from onnx_backend_tests.migrate(NAME, [test], onnx_backend_tests.single_operator)
    else:
        yield _drawn(name, model)


def _drawn(name: str, model: ModelProto) -> TestCase | Skip:
    """The model as it is, with drawn inputs."""
    import onnx

    try:
        onnx.checker.check_model(model)
        inputs = tuple(whole_inputs(onnx_singles.inferred(model)))
    except onnx.checker.ValidationError as error:
        return Skip(name, "the model is not valid ONNX", str(error)[:300])
    except (CannotDrawError, CannotTellError) as error:
        return Skip(name, str(error), getattr(error, "detail", ""))
    random = draws_random_numbers(model, {})
    return TestCase(
        program=OnnxModel(model.SerializeToString(deterministic=True)),
        inputs=inputs,
        comparison="shapes" if random else "values",
        provenance=Provenance(
            NAME,
            name,
            onnx_backend_tests.operator_in(model),
            onnx_backend_tests.LIBRARY,
            version(onnx_backend_tests.LIBRARY),
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
