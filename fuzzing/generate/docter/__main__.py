"""`python -m fuzzing.generate.docter`: constraints of APIs, calls drawn from them, and their acceptance.

list                    every API, one a line
show API                its record as YAML, each constraint with the sentence it came from
draw API                calls of it, as Python
measure [API-PREFIX …]  the share of draws that the library accepts, by API and in total
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ruamel.yaml import YAML

from fuzzing.entry_point import note, run_main
from fuzzing.errors import UsageError
from fuzzing.generate.docter import apis, report_tables, trials, value_profiles
from fuzzing.generate.docter.call_generator import Mode, draw
from fuzzing.generate.docter.checker import find_violations
from fuzzing.generate.docter.extraction import extract_constraints

_PROGRESS_EVERY = 500  # trials


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code: 2 for a usage error, 3 for an infrastructure error."""
    given = _parser().parse_args(arguments)
    return run_main("python -m fuzzing.generate.docter", lambda: given.run(given), events=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing.generate.docter", description=__doc__.partition("\n")[0]
    )
    commands = parser.add_subparsers(required=True)
    listing = commands.add_parser("list", help="every API there is")
    listing.set_defaults(run=_list)
    show = commands.add_parser("show", help="the constraints of an API")
    show.set_defaults(run=_show)
    drawing = commands.add_parser("draw", help="calls of an API")
    drawing.set_defaults(run=_draw)
    for command in (show, drawing):
        command.add_argument("api", help="a dotted name, such as torch.nn.Conv2d")
    measure = commands.add_parser("measure", help="the share of draws that the library accepts")
    measure.set_defaults(run=_measure)
    measure.add_argument("prefixes", nargs="*", help="of the APIs to draw from; all by default")
    for command in (drawing, measure):
        command.add_argument("--count", type=int, default=10, help="draws of each API (10)")
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--mode", choices=[mode.value for mode in Mode], default=Mode.CONFORMING.value)
        command.add_argument("--profile", default="tame", help="tame or paper (tame)")
    return parser


def _list(_: argparse.Namespace) -> None:
    for api in apis.list_apis():
        _print(api)


def _show(given: argparse.Namespace) -> None:
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 110
    yaml.dump(extract_constraints(given.api).to_json(), sys.stdout)


def _draw(given: argparse.Namespace) -> None:
    record = extract_constraints(given.api)
    plan = trials.TrialPlan(given.count, given.seed, Mode(given.mode), value_profiles.get(given.profile))
    for place in range(given.count):
        name = plan.name(given.api, place)
        call = draw(record, plan.make_rng(name), plan.mode_of(place), plan.profile)
        _print(report_tables.format_call(call))
        for violation in find_violations(call):
            _print(f"    # {violation.parameter}: {violation.text} ({violation.category})")


def _measure(given: argparse.Namespace) -> None:
    names = [api for api in apis.list_apis() if not given.prefixes or api.startswith(tuple(given.prefixes))]
    if not names:
        raise UsageError(
            f"no API begins with {' or '.join(given.prefixes)}; python -m fuzzing.generate.docter list"
        )
    plan = trials.TrialPlan(given.count, given.seed, Mode(given.mode), value_profiles.get(given.profile))
    found = []
    for trial in trials.run(names, plan):
        found.append(trial)
        if len(found) % _PROGRESS_EVERY == 0:
            note(f"{len(found)} of {len(names) * given.count} draws")
    for line in report_tables.format_acceptance(found):
        _print(line)


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
