"""ONNX model files as cases: `python -m fuzzing.migrate.onnx_files --corpus DIR PATH…`.

A path is a model, or a folder that is searched for models. Data beside a model belong to it if the folder
holds no other model:

    FOLDER/model.onnx
    FOLDER/test_data_set_0/input_0.pb, output_0.pb, …

Each data set is a case, `model.onnx/test_data_set_0`; missing outputs come from the reference. Inputs of
other models are drawn by recipe, deterministically. Prints the events of `fuzzing.migrate`; a file that
becomes no case is a skip, with the reason.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from fuzzing.cases import Corpus, Input, Provenance, TestCase, Tolerance, Value
from fuzzing.errors import CaseFormatError
from fuzzing.migrate import onnx_backend_tests, onnx_data_sets, onnx_loader, onnx_single_nodes
from fuzzing.migrate.onnx_backend_tests import to_value
from fuzzing.migrate.onnx_input_values import CannotDrawError
from fuzzing.migrate.onnx_model_inputs import draw_inputs
from fuzzing.migrate.onnx_single_nodes import UnsupportedModelError
from fuzzing.migrate.sources import Skip, Source

if TYPE_CHECKING:
    from onnx import ModelProto

NAME = "onnx-files"
_TOLERANCE = Tolerance(
    1e-3, 1e-7
)  # what ONNX's own runner allows models with data (onnx.backend.test.loader)
_MODEL = re.compile(r"[^.].*\.onnx", re.IGNORECASE | re.DOTALL)
_DETAIL = 300  # characters of onnx's message

Data = tuple[tuple[tuple[str, Input], ...], tuple[tuple[str, Value], ...] | None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    from fuzzing.entry_point import run_main
    from fuzzing.migrate.__main__ import run

    name = "python -m fuzzing.migrate.onnx_files"
    parser = argparse.ArgumentParser(prog=name, description="Make cases of ONNX models.")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a model, or a folder of them")
    parser.add_argument("--corpus", required=True, type=Path, help="the folder that keeps the cases")
    given = parser.parse_args(arguments)
    source = Source(NAME, onnx_backend_tests.LIBRARY, lambda: migrate(given.paths))
    return run_main(parser.prog, lambda: run(source, Corpus(given.corpus)))


def migrate(paths: Sequence[Path]) -> Iterator[TestCase | Skip]:
    """The models at these paths, by name; raises InfrastructureError where onnx is not installed."""
    with onnx_backend_tests.isolate_import(NAME):
        import onnx  # noqa: F401 - raises here if it is missing
    for path in paths:
        refused: list[OSError] = []
        files = _models(path, refused.append)
        for error in refused:
            yield Skip(
                _display_name(Path(error.filename), path), "the folder cannot be read", str(error.strerror)
            )
        beside = Counter(one.parent for one in (files if path.is_dir() else _models(path.parent)))
        for file in files:
            yield from _cases(file, _display_name(file, path), alone=beside[file.parent] <= 1)


def _models(path: Path, refused: Callable[[OSError], object] | None = None) -> list[Path]:
    """The model at a path, or those in the folder and its subfolders, by name.

    Hidden files and folders and links to folders are left out; unreadable folders are passed to `refused`.
    """
    if not path.is_dir():
        return [path]
    found: list[Path] = []
    for folder, inside, files in os.walk(path, onerror=refused):
        inside[:] = [name for name in inside if not name.startswith(".")]
        found += [Path(folder, name) for name in files if _MODEL.fullmatch(name)]
    return sorted(found)


def _display_name(file: Path, path: Path) -> str:
    name = file.relative_to(path) if file != path else Path(path.name)
    return str(name).encode(errors="backslashreplace").decode()


def _cases(file: Path, name: str, *, alone: bool) -> Iterator[TestCase | Skip]:
    try:
        model = onnx_loader.read_model(file)
        onnx_backend_tests.check_model(model)
    except UnsupportedModelError as error:
        yield _skip(name, error)
        return
    sets = onnx_data_sets.data_set_folders(file.parent) if alone else []
    if not sets:
        yield _build_case(
            name, model, lambda: (tuple(draw_inputs(onnx_single_nodes.infer_shapes(model))), None), None
        )
    for folder in sets:
        yield _build_case(f"{name}/{folder.name}", model, partial(_read_data, folder, model), _TOLERANCE)


def _build_case(
    name: str, model: ModelProto, data: Callable[[], Data], tolerance: Tolerance | None
) -> TestCase | Skip:
    library = onnx_backend_tests.LIBRARY
    origin = Provenance(NAME, name, onnx_backend_tests.operator_in(model), library, version(library))
    try:
        given, expected = data()
        if expected is None:
            _check_standard(model)
        return onnx_backend_tests.build_case(model, given, expected, tolerance, origin)
    except (CannotDrawError, UnsupportedModelError) as error:
        return _skip(name, error)
    except CaseFormatError as error:
        return Skip(name, "an input or output has no form in a case", str(error))


def _check_standard(model: ModelProto) -> None:
    """Raises UnsupportedModelError for operators outside the standard: there is no reference for them."""
    own = {(function.domain, function.name) for function in model.functions}
    nodes = chain(
        (node for node, _ in onnx_single_nodes.walk_nodes(model)), *(one.node for one in model.functions)
    )
    for node in nodes:
        standard = not node.domain or node.domain.startswith("ai.onnx")
        if not standard and (node.domain, node.op_type) not in own:
            raise UnsupportedModelError(
                "an operator is not one of the standard's, and no outputs lie beside the model",
                f"{node.domain}.{node.op_type}",
            )


def _read_data(folder: Path, model: ModelProto) -> Data:
    """The data set in a folder, by the model's names; None for missing outputs."""
    inputs, outputs = onnx_data_sets.read_data_set(folder, model)
    items = onnx_data_sets.match_inputs(model, len(inputs))
    given = tuple((item.name, to_value(one)) for item, one in zip(items, inputs, strict=False))
    expected = tuple(
        (item.name, to_value(one)) for item, one in zip(model.graph.output, outputs, strict=False)
    )
    for item, (_, value) in zip(items, given, strict=False):
        onnx_data_sets.check_fits(item, value)
    return given, expected or None


def _skip(name: str, error: UnsupportedModelError | CannotDrawError) -> Skip:
    return Skip(name, str(error), getattr(error, "detail", "")[:_DETAIL])


if __name__ == "__main__":
    sys.exit(main())
