"""`python -m fuzzing.equivalence [--library L]`: the rules of equivalence and the APIs they apply to.

Prints one JSON object a line: {"event": "rule", "name", "number", "equation", "count", "apis": […]}.
Exit codes: 0 done, 2 usage error, 3 infrastructure error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from fuzzing.entry_point import emit_event, run_main
from fuzzing.equivalence import layers, rule
from fuzzing.equivalence.pairs import SOURCES
from fuzzing.errors import InfrastructureError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.equivalence", description="List the rules.")
    parser.add_argument("--rules", default="all", help="names of rules, by commas")
    parser.add_argument("--library", default="torch", choices=tuple(SOURCES), help="whose APIs")
    given = parser.parse_args(arguments)
    return run_main(parser.prog, lambda: _list(given.rules, given.library))


def _list(wanted: str, library: str) -> None:
    try:
        import torch  # noqa: F401 - its APIs are listed

        if library == "keras":
            layers.installed()
    except ImportError as error:
        raise InfrastructureError(
            f"the rules are about {library}: pip install {library} ({error})"
        ) from error
    for one in rule.select(wanted, library):
        apis = sorted(one.apis())
        emit_event(
            event="rule", name=one.name, number=one.number, equation=one.equation, count=len(apis), apis=apis
        )


if __name__ == "__main__":
    sys.exit(main())
