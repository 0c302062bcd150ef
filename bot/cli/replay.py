"""Run one stored case again and show the verdict."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from bot.cli._cases import stored_case
from bot.cli._options import check_device, option_option, parse_options
from bot.cli.exits import Exit
from bot.errors import ProvisionError, UsageError
from bot.reports.evidence import tolerance_lines
from bot.runners import LocalRunner
from bot.toolchains import Ready, provision
from bot.toolchains.existing import existing_spec
from fuzzing import backends
from fuzzing.cases import Corpus, TestCase
from fuzzing.execute.shard import Shard
from fuzzing.oracles.profiles import DEFAULT, profile_named
from fuzzing.outcomes import Outcome, Verdict

_STYLE = {Verdict.PASS: "green", Verdict.UNSUPPORTED: "yellow", Verdict.INVALID: "yellow"}
_MESSAGE_LINES = 12


@dataclass
class Replayed:
    """What a case did on one toolchain."""

    toolchain: Ready
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """The verdict, nondeterministic if the runs disagree."""
        seen = {outcome.verdict for outcome in self.outcomes}
        return seen.pop() if len(seen) == 1 else Verdict.NONDETERMINISTIC


@click.command()
@click.argument("case")
@click.option(
    "--corpus", type=click.Path(path_type=Path), help="Where CASE is looked up. [default: the service's]"
)
@click.option("--backend", "names", multiple=True, help="Compiler to use; may be repeated. [default: all]")
@click.option("--python", default=sys.executable, help="Interpreter that holds it. [default: Assay's own]")
@click.option("--device", help="Device to compile for. [default: each backend's first]")
@option_option
@click.option("--profile", default=DEFAULT, show_default=True, help="Tolerance profile of the oracle.")
@click.option(
    "--repeats", default=1, show_default=True, type=click.IntRange(1), help="Fresh processes to use."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    case: str,
    corpus: Path | None,
    names: tuple[str, ...],
    python: str,
    device: str | None,
    given: tuple[str, ...],
    profile: str,
    repeats: int,
    as_json: bool,
) -> Exit:
    """Run one stored case again and show the verdict.

    CASE is the folder of a case, or the beginning of its id in the corpus. Every run has a process of its
    own. What fails is run again with ever more of the compiler switched on, where the compiler can be
    taken apart, to name the part at fault. Exit code 1 if a compiler is at fault.
    """
    profile_named(profile)
    options = parse_options(given)
    for name in names:
        backends.get(name).settle(options)
        if device is not None:
            check_device(name, device)
    if options and not names:
        raise UsageError("--option is for one backend: name it with --backend")
    with stored_case(case, corpus) as (store, found), Console(stderr=True).status("replaying"):
        how = _How(store, found, device, options, profile, repeats)
        replayed = [_replay(how, ready) for ready in _toolchains(found, names, python, device)]
    if as_json:
        click.echo(json.dumps(_as_json(found, replayed)))
    else:
        _print(found, replayed)
    at_fault = any(one.verdict.accuses for one in replayed)
    return Exit.FOUND if at_fault else Exit.OK


def _toolchains(case: TestCase, names: tuple[str, ...], python: str, device: str | None) -> list[Ready]:
    """The compilers asked for; without any, those in `python` that take the case and the device."""
    ready = []
    kind = case.program.kind
    for name in names:
        if kind not in backends.get(name).kinds:
            raise UsageError(f"--backend {name}: it takes {', '.join(backends.get(name).kinds)}, not {kind}")
    suitable = [
        name
        for name in backends.compilers()
        if kind in backends.get(name).kinds and device in (None, *backends.get(name).devices)
    ]
    for name in names or suitable:
        try:
            ready.append(provision(existing_spec(name, python), Path(), lambda _line: None))
        except ProvisionError:
            if names:
                raise
    if not ready:
        wanted = f"{kind} programs" + (f" and {device}" if device else "")
        raise UsageError(f"{python} holds no compiler for {wanted} that Assay knows; see `assay doctor`")
    return ready


@dataclass(frozen=True)
class _How:
    """What to run, and how."""

    store: Corpus
    case: TestCase
    device: str | None
    options: dict[str, str]
    profile: str
    repeats: int


def _replay(how: _How, toolchain: Ready) -> Replayed:
    replayed = Replayed(toolchain)

    def take(event: dict[str, Any]) -> None:
        if event["event"] == "outcome":
            replayed.outcomes.append(Outcome.from_json(event["outcome"]))

    backend = backends.get(toolchain.spec.backend)
    shard = Shard(
        corpus=str(how.store.root.resolve()),
        cases=(how.case.id,),
        backend=toolchain.spec.backend,
        toolchain=toolchain.digest,
        python=toolchain.python,
        device=how.device or backend.devices[0],
        options={name: value for name, value in how.options.items() if value != backend.options[name][0]},
        profile=how.profile,
        fresh=True,
        repeats=how.repeats,
        ablate=True,
    )
    LocalRunner(1).run(shard, take, threading.Event())
    return replayed


def _as_json(case: TestCase, replayed: list[Replayed]) -> dict[str, Any]:
    toolchains = [
        {
            "backend": one.toolchain.spec.backend,
            "versions": one.toolchain.versions,
            "verdict": one.verdict.value,
            "outcomes": [outcome.to_json() for outcome in one.outcomes],
        }
        for one in replayed
    ]
    return {"case": case.id, "test": case.provenance.test, "toolchains": toolchains}


def _print(case: TestCase, replayed: list[Replayed]) -> None:
    console = Console(soft_wrap=True, highlight=False)
    origin = case.provenance
    operator = origin.operator or "no single operator"
    console.print(f"{origin.test or 'case'} ({operator}; {origin.library} {origin.version})")
    console.print(f"{case.id}\n")
    for one in replayed:
        _print_one(console, one)


def _print_one(console: Console, one: Replayed) -> None:
    outcome = next(outcome for outcome in one.outcomes if _agrees(outcome, one.verdict))
    versions = ", ".join(f"{name} {version}" for name, version in sorted(one.toolchain.versions.items()))
    style = _STYLE.get(one.verdict, "red")
    runs = f" in {len(one.outcomes)} of {len(one.outcomes)} runs" if len(one.outcomes) > 1 else ""
    how = f" {escape(outcome.configuration)}" if outcome.configuration else ""
    console.print(
        f"[bold]{one.toolchain.spec.backend}[/]{how}: [{style}]{one.verdict.value}[/]{runs}  ({versions})"
    )
    times = ", ".join(f"{phase} {seconds * 1e3:.1f} ms" for phase, seconds in outcome.durations.items())
    console.print(f"  {escape(outcome.summary)}")
    console.print(f"  [dim]{times}[/]")
    evidence = outcome.evidence
    for text in (evidence.message, evidence.native):
        for line in text.splitlines()[:_MESSAGE_LINES]:
            console.print(f"    {escape(line)}")
    for mismatch in evidence.mismatches:
        where = (
            f" at {list(mismatch.worst)}: got {mismatch.got}, want {mismatch.want}" if mismatch.got else ""
        )
        console.print(f"    output {escape(mismatch.output)}: {escape(mismatch.detail)}{escape(where)}")
        for line in tolerance_lines(mismatch):
            console.print(f"      {escape(line)}")
    if evidence.component:
        console.print(f"  first fails at: [bold]{escape(evidence.component)}[/]")
    for options, verdict in evidence.rungs:
        console.print(f"    {verdict:13} {escape(options)}")


def _agrees(outcome: Outcome, verdict: Verdict) -> bool:
    return verdict in (outcome.verdict, Verdict.NONDETERMINISTIC)
