"""TVM's tests of its importer of exported torch programs."""

from __future__ import annotations

from typing import ClassVar

from bot.proposals.code_style import CodeStyle
from bot.proposals.writer import Writer, writer


@writer
class TvmExportedProgramWriter(Writer):
    """`test_frontend_from_exported_program.py`, with its helper `verify_model_numerically`."""

    name = "tvm-exported-program"
    backend = "tvm"
    frontend = "torch"
    style: ClassVar[CodeStyle] = CodeStyle(line_length=100)
    first_party = "tvm"
    path = "tests/python/relax/test_frontend_from_exported_program.py"
    helper = "verify_model_numerically"
    suite: ClassVar[tuple[str, ...]] = (
        "tests/python/relax/test_frontend_from_*.py",
        "tests/python/relax/test_frontend_dynamo.py",
    )
