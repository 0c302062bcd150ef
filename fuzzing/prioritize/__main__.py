"""`python -m fuzzing.prioritize --strategy NAME [--catalog FILE]… [--corpus DIR]`: ranks cases.

The instances come from catalogs (JSON lines with "id" and "instance"), from the cases of a corpus, or from
both; duplicates count once. Prints one JSON object a line on stdout, progress on stderr:

    {"event": "touched", "operator": NAME, "weight": W, "why": TEXT, "places": [{path, line, role}, …]}
    {"event": "touched", "pass": NAME, "places": […]}   both with --touched N and --change, by weight
    {"event": "ranked", "id": ID, "why": {…}}        "why" with --explain
    {"event": "end", "cases": N, "strategy": NAME, "seconds": S}      without reading the cases

Exit codes: 0 success, 2 usage error, 3 failure of the machine.
"""

from __future__ import annotations

# isort: off
from fuzzing.prioritize import single_threaded_blas  # noqa: F401 - before numpy
# isort: on

import argparse
import gc
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fuzzing.cases import Corpus
from fuzzing.entry_point import emit_event, note, run_main
from fuzzing.errors import UsageError
from fuzzing.prioritize import change, coverage_measurement, strategies, suites
from fuzzing.prioritize.api_signatures import ApiSignatures
from fuzzing.prioritize.change import history
from fuzzing.prioritize.instances import Instance, extract_instance, read_instances

_PROGRESS_EVERY = 1000  # cases of a corpus; one or two seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit code."""
    given = _parser().parse_args(arguments)
    gc.disable()  # the instances stay to the end: searching them for garbage would only take time
    try:
        return run_main("python -m fuzzing.prioritize", lambda: _rank(given))
    finally:
        gc.enable()


def _rank(given: argparse.Namespace) -> None:
    strategy = strategies.get(given.strategy)
    instances = list(distinct(_instances(given.catalog, given.corpus)))
    context = _context(given)
    if given.touched and isinstance(context.change, change.Change):
        operators = {instance.operator for instance in instances}
        for touched in describe_touched(context.change, operators, given.touched):
            emit_event(event="touched", **touched)
    begin = time.perf_counter()
    for one in strategy(instances, context):
        why: dict[str, Any] = {"why": dict(one.why)} if given.explain else {}
        emit_event(event="ranked", id=instances[one.instance_index].id, **why)
    seconds = time.perf_counter() - begin
    emit_event(event="end", cases=len(instances), strategy=given.strategy, seconds=round(seconds, 3))


def describe_touched(given: change.Change, operators: Iterable[str], most: int) -> Iterator[dict[str, Any]]:
    """What a change touches: at most `most` operators, highest weight first, then as many passes."""
    touched = change.find_touched_operators(given, operators)
    surest = sorted(touched.operators, key=lambda name: (-touched.operators[name], name))
    for name in surest[:most]:
        places = [asdict(place) for place in touched.places.get(name, ())]
        weight = round(touched.operators[name], 4)
        yield {"operator": name, "weight": weight, "why": touched.reasons[name][0], "places": places}
    for name, place in list(touched.pass_places.items())[:most]:
        yield {"pass": name, "places": [asdict(place)]}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzzing.prioritize", description="Put cases in order.")
    parser.add_argument("--strategy", required=True, help="how; a wrong name lists them")
    parser.add_argument("--catalog", action="append", default=[], type=Path, help="JSON lines of cases")
    parser.add_argument("--corpus", type=Path, help="a folder of cases")
    parser.add_argument(
        "--suite", action="append", default=[], help="the compiler's own tests: openvino.torch"
    )
    parser.add_argument("--change", type=Path, help="a commit's changes, as JSON")
    parser.add_argument("--history", type=Path, help="what cases did before, as JSON lines")
    parser.add_argument("--coverage", type=Path, help="what cases cover, as JSON lines")
    parser.add_argument("--seed", type=int, default=strategies.SEED)
    parser.add_argument("--backend", default="", help="the compiler that the cases are for")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="of the strategy")
    parser.add_argument(
        "--touched", type=int, default=0, metavar="N", help="show first what the change touches, N at most"
    )
    parser.add_argument("--explain", action="store_true", help="show why each case has its rank")
    return parser


def _context(given: argparse.Namespace) -> strategies.Context:
    """The strategy's context. A suite is for the frontend that its name ends in, or else for all others."""
    return strategies.Context(
        suites={_frontend(name): suites.load(name) for name in given.suite},
        change=None if given.change is None else change.read(given.change),
        history=None if given.history is None else history.read(given.history),
        coverage=None if given.coverage is None else coverage_measurement.load(given.coverage),
        seed=given.seed,
        backend=given.backend,
        options=dict(_option(text) for text in given.option),
        explain=given.explain,
    )


def _frontend(suite: str) -> str:
    """The part of a suite's name, or of its file's, after the last dot."""
    name, point, frontend = Path(suite).name.removesuffix(".json").rpartition(".")
    return frontend if point and name else ""


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--option takes NAME=VALUE, not {text!r}")
    return name, value


def _instances(catalogs: Iterable[Path], corpus: Path | None) -> Iterator[Instance]:
    for path in catalogs:
        yield from _catalogue(path)
    if corpus is not None:
        yield from of_corpus(Corpus(corpus))


def _catalogue(path: Path) -> Iterator[Instance]:
    try:
        with open(path, encoding="utf-8") as file:
            yield from read_instances(file)
    except OSError as error:
        raise UsageError(f"cannot read the catalog {path}: {error.strerror}") from None


def of_corpus(corpus: Corpus) -> Iterator[Instance]:
    """The instances of all cases of a corpus, in the order of their ids."""
    signatures = ApiSignatures()
    for count, case_id in enumerate(corpus.ids(), 1):
        yield extract_instance(corpus.get(case_id), signatures)
        if count % _PROGRESS_EVERY == 0:
            note(f"{count} cases read from {corpus.root}")


def distinct(instances: Iterable[Instance]) -> Iterator[Instance]:
    """The first instance of each case."""
    seen = set()
    for one in instances:
        if one.id not in seen:
            seen.add(one.id)
            yield one


if __name__ == "__main__":
    sys.exit(main())
