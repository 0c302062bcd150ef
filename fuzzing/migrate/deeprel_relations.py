"""`python -m fuzzing.migrate.deeprel_relations run|show`: APIs of torch that behave alike, found by running
them.

    run [--corpus DIR] [--relations FILE] [--rounds N] [--mutants N] [--seed N]
        tries every candidate pair; writes the relations that hold to FILE, one JSON object a line, and
        prints a summary
    show API [--relations FILE] [--mutants N] [--seed N]
        prints the relations of one API: from FILE, or computed from its own recorded calls

Recorded calls are samples of torch's own databases, or, with --corpus, the TorchCall cases in a folder.
Progress goes to stderr. Exit codes: 0 done, 2 usage error, 3 infrastructure error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from pathlib import Path

from fuzzing.cases import Corpus, TestCase, TorchCall
from fuzzing.entry_point import note, run_main
from fuzzing.errors import InfrastructureError, UsageError
from fuzzing.generate.deeprel.api_inventory import canonical_name, list_apis
from fuzzing.generate.deeprel.api_pairs import Inconsistency, LibraryBug
from fuzzing.generate.deeprel.search import Relation, Search, SearchSettings
from fuzzing.migrate.deeprel_seeds import sample_calls

_PROGRESS_EVERY = 250  # pairs; some seconds apart


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    work = _run if given.command == "run" else _show
    return run_main("python -m fuzzing.migrate.deeprel_relations", lambda: work(given), events=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing.migrate.deeprel_relations",
        description="Find APIs of torch that behave alike.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="try every candidate pair")
    run.add_argument("--corpus", type=Path, help="take the recorded calls from this folder of cases")
    run.add_argument("--rounds", type=int, default=SearchSettings.rounds, help="at most so many rounds (10)")
    show = commands.add_parser("show", help="print the relations of one API")
    show.add_argument("api", help="such as torch.nn.functional.relu")
    for command in (run, show):
        command.add_argument("--relations", type=Path, help="the file of relations to write, or to read")
        command.add_argument(
            "--mutants", type=int, default=0, help="mutated calls of each pair that holds (0)"
        )
        command.add_argument("--seed", type=int, default=0, help="what mutants are drawn from (0)")
    return parser


# run ---------------------------------------------------------------------------------------------------


def _run(given: argparse.Namespace) -> None:
    settings = SearchSettings(rounds=given.rounds, mutants=given.mutants, seed=given.seed)
    note("collecting the recorded calls")
    seeds = sample_calls(settings.invocations) if given.corpus is None else _cases(given.corpus)
    search = Search(seeds, settings)
    note(f"{search.totals.seeds} calls of {search.totals.sources} APIs; trying their candidates")
    relations = list(_relations(search))
    if given.relations is not None:
        _write(given.relations, relations)
    sys.stdout.write(search.totals.text() + "\n")


def _cases(folder: Path) -> Iterator[TestCase]:
    cases = 0
    for case in Corpus(folder):
        cases += isinstance(case.program, TorchCall)
        yield case
    if not cases:
        raise UsageError(
            f"{folder} holds no call of torch; "
            "fill it with python -m fuzzing.migrate torch-opinfo --corpus, or leave --corpus out"
        )


def _relations(search: Search) -> Iterator[Relation]:
    """The relations that hold; prints the library's bugs and mutants' differences as they occur."""
    for item in search.run():
        if isinstance(item, Relation):
            if item.equivalence:
                yield item
            if search.totals.pairs % _PROGRESS_EVERY == 0:
                holding = search.totals.equivalent.total()
                note(f"round {item.round}: {search.totals.pairs} pairs, {holding} of them hold")
        elif isinstance(item, LibraryBug):
            sys.stdout.write(f"bug: {item.api}: {item.reason}\n{_indented(item.case)}\n")
        elif isinstance(item, Inconsistency):
            head = f"differs: {item.target} from {item.source} ({item.equivalence}): {item.reason}"
            sys.stdout.write(f"{head}\n{_indented(item.case)}\n")


def _indented(case: TestCase) -> str:
    program = case.program
    text = program.to_bytes().decode() if isinstance(program, TorchCall) else ""
    return "\n".join(f"    {line}" for line in text.splitlines())


def _write(path: Path, relations: Sequence[Relation]) -> None:
    lines = "".join(json.dumps(asdict(relation)) + "\n" for relation in relations)
    try:
        path.write_text(lines)
    except OSError as error:
        raise InfrastructureError(
            f"cannot write {path}: {error.strerror}; choose another --relations"
        ) from error


# show --------------------------------------------------------------------------------------------------


def _show(given: argparse.Namespace) -> None:
    name = _known(given.api)
    if given.relations is not None:
        found = [item for item in _read(given.relations) if name in (item.source, item.target)]
        sys.stdout.write(f"{name}: {len(found)} relations in {given.relations}\n")
    else:
        settings = SearchSettings(rounds=1, mutants=given.mutants, seed=given.seed)
        search = Search(sample_calls(settings.invocations, lambda entry: _is_of(entry, name)), settings)
        if name not in search.totals.covered:
            raise UsageError(
                f"torch's databases hold no call of {name}; only a whole run may know its relations: "
                "python -m fuzzing.migrate.deeprel_relations run --relations FILE, then show --relations FILE"
            )
        found = [item for item in _relations(search) if item.source == name]
        head = f"{name}: {len(found)} of {search.totals.candidates} candidates hold"
        sys.stdout.write(f"{head}, on {search.totals.seeds} recorded calls\n")
    for item in sorted(found, key=lambda item: (item.equivalence != "value", -item.similarity, item.target)):
        other = item.target if item.source == name else f"{item.source} (whose calls it takes)"
        line = f"  {item.equivalence:<6}  {item.held:>3} of {item.tried:<3}  {item.similarity:.2f}  {other}"
        sys.stdout.write(line + "\n")


def _is_of(entry: str, name: str) -> bool:
    """Whether an entry of torch's databases belongs to an API."""
    return canonical_name(entry) == name or entry == name.replace("torch.Tensor.", "torch.")


def _known(name: str) -> str:
    found = canonical_name(name) if name.startswith("torch.") else ""
    if not found:
        near = get_close_matches(name, list_apis(), n=3)
        hint = (
            f"; did you mean {' or '.join(near)}?" if near else "; names are such as torch.nn.functional.relu"
        )
        raise UsageError(f"torch has no operator, method or module {name!r}{hint}")
    return found


def _read(path: Path) -> list[Relation]:
    try:
        return [Relation(**json.loads(line)) for line in path.read_text().splitlines()]
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}; write it with run --relations {path}"
        ) from error
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"{path} holds no relations ({error}); write it with run --relations {path}"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
