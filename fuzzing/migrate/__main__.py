"""`python -m fuzzing.migrate SOURCE --corpus DIR [--part I/N …] [--seed S] [--count N] …`: converts a
library's tests to cases.

Prints one JSON object a line on stdout, progress on stderr:
    {"event": "case", "id": ID, "test": NAME, "operator": OP, "instance": {…}}
    {"event": "skip", "test": NAME, "reason": TEXT, "detail": TEXT}
    {"event": "search", "models": N, "curve": […], …}     see fuzzing.generate.graph_search.record
    {"event": "end", "cases": N, "new": N, "skipped": {REASON: COUNT}, "library": …, "version": …}
An instance is what ranking uses: `fuzzing.prioritize.instances`. Cases already in the corpus are listed and
counted, not rewritten. --part 2/4 migrates the second of four parts, which together are the source; several
parts are migrated in turn, with an end event each. --change FILE migrates the tests of the operators that a
change names (`fuzzing.prioritize.change.diff`).
Exit codes: 0 done, 2 usage error, 3 infrastructure error.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from fuzzing.cases import Corpus, TestCase
from fuzzing.entry_point import emit_event, note, run_main
from fuzzing.errors import InfrastructureError
from fuzzing.migrate import sources
from fuzzing.migrate.source_parts import OperatorsOfChange, Part, Selection, migrate_source
from fuzzing.prioritize import change
from fuzzing.prioritize.api_signatures import ApiSignatures
from fuzzing.prioritize.instances import extract_instance

_PROGRESS_EVERY = 250  # tests; some second or two apart
#: Options of generated sources, by the names of their functions' parameters.
_OPTIONS = ("seed", "count", "blocks", "reward", "feedback", "ablation", "rules", "models")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.migrate", description="Make cases of tests.")
    parser.add_argument("source", help="the case source, such as onnx-node-tests")
    parser.add_argument("--corpus", required=True, type=Path, help="the folder that keeps the cases")
    parser.add_argument(
        "--part", action="append", default=[], metavar="I/N", help="only part I of N, by the tests' names"
    )
    parser.add_argument("--change", type=Path, help="only tests of operators that this change names")
    parser.add_argument("--seed", type=int, help="of a generated source [default: 0]")
    parser.add_argument("--count", type=int, help="of a generated source: models, or calls of each API")
    parser.add_argument("--blocks", type=int, help="of each model of graph-search [default: 1 to 10]")
    parser.add_argument("--reward", help="what graph-search rewards [default: coverage]")
    parser.add_argument("--feedback", metavar="B", help="the compiler that other rewards of graph-search use")
    parser.add_argument("--ablation", type=int, choices=(0, 1), help="of graph-search: 1 runs it")
    parser.add_argument("--rules", help="of the source eagle: names of equivalence rules, by commas")
    parser.add_argument("--models", help="of onnx-mutants: a model or a folder of models, not ONNX's tests")
    given = parser.parse_args(arguments)
    wanted = {name: getattr(given, name) for name in _OPTIONS}
    options = {name: value for name, value in wanted.items() if value is not None}

    def work() -> None:
        parts: list[Selection] = [Part.parse(text) for text in given.part]
        if given.change:
            parts.append(OperatorsOfChange.of(change.read(given.change)))
        source = sources.get(given.source)
        for part in parts or (None,):
            run(source, Corpus(given.corpus), part, options=options)

    return run_main(parser.prog, work)


def run(
    source: sources.Source,
    corpus: Corpus,
    part: Selection | None = None,
    closing: Callable[[], Mapping[str, object]] = dict,
    options: Mapping[str, int | str] | None = None,
) -> None:
    """Migrates `source`, or a part of it, into `corpus`, printing events; the end event includes `closing()`.

    options  of a generated source, such as seed and count
    """
    note(f"{source.name}: making cases, by {source.library}")
    cases = new = 0
    skipped: Counter[str] = Counter()
    signatures = ApiSignatures()
    for item in migrate_source(source, part, options):
        if isinstance(item, TestCase):
            cases += 1
            new += _store(item, corpus)
            _case(item, signatures)
        else:
            skipped[item.reason] += 1
            emit_event(event="skip", test=item.test, reason=item.reason, detail=item.detail)
            note(f"{source.name}: skipped {item.test}: {item.reason} {item.detail}".rstrip())
        if (cases + skipped.total()) % _PROGRESS_EVERY == 0:
            note(f"{source.name}: {cases} cases, {new} of them new, {skipped.total()} tests skipped")
    emit_event(
        event="end",
        cases=cases,
        new=new,
        skipped=dict(sorted(skipped.items())),
        library=source.library,
        version=version(source.library),
        **closing(),
    )


def _store(case: TestCase, corpus: Corpus) -> bool:
    try:
        return corpus.add(case)
    except OSError as error:
        raise InfrastructureError(
            f"cannot write to the corpus {corpus.root}: {error.strerror}; "
            "choose another folder with --corpus, or free what it needs"
        ) from error


def _case(case: TestCase, signatures: ApiSignatures) -> None:
    prov, instance = case.provenance, extract_instance(case, signatures)
    emit_event(event="case", id=case.id, test=prov.test, operator=prov.operator, instance=instance.to_json())


if __name__ == "__main__":
    sys.exit(main())
