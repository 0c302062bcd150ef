"""Run one case again and show the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from bot.cli.common.case_lookup import cases_to_json, find_cases
from bot.cli.common.console import stderr, stdout
from bot.cli.common.execution import find_toolchain, run_shard
from bot.cli.common.options import (
    check_profile,
    compatible_backends,
    configuration_options,
    corpus_option,
    data_set_option,
    json_option,
    parse_options,
    python_option,
)
from bot.cli.exits import Exit
from bot.errors import ProvisionError, UsageError
from bot.reports.mismatch_summary import describe_tolerance
from bot.terminal import echo
from bot.toolchains import ReadyToolchain
from fuzzing import backends
from fuzzing.cases import Corpus, TestCase
from fuzzing.execute.shard import Shard
from fuzzing.outcomes import Outcome, Verdict

_STYLE = {Verdict.PASS: "green", Verdict.UNSUPPORTED: "yellow", Verdict.INVALID: "yellow"}
_MESSAGE_LINES = 12


@dataclass
class Replayed:
    """What a case did on one toolchain."""

    toolchain: ReadyToolchain
    outcomes: list[Outcome]

    @property
    def verdict(self) -> Verdict:
        """The verdict, nondeterministic if the runs disagree."""
        seen = {outcome.verdict for outcome in self.outcomes}
        return seen.pop() if len(seen) == 1 else Verdict.NONDETERMINISTIC


@click.command()
@click.argument("case")
@corpus_option
@data_set_option
@click.option("--backend", "names", multiple=True, help="Compiler to use; may be repeated. [default: all]")
@python_option
@configuration_options
@click.option(
    "--repeats",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="Number of runs, each in a fresh process.",
)
@json_option
def command(
    case: str,
    corpus: Path | None,
    data_set: int | None,
    names: tuple[str, ...],
    python: str,
    device: str | None,
    given: tuple[str, ...],
    profile: str,
    repeats: int,
    as_json: bool,
) -> Exit:
    """Run one case again and show the verdict.

    CASE is an ONNX model, the folder of a case, or the beginning of its id in the corpus. A model with
    several data sets runs each; with --json they are a list of "cases". Each run uses a fresh process. A
    failing case is repeated with more and more of the compiler enabled, if the backend supports it, to name
    the failing part. Exit code 1 if a compiler fails.
    """
    check_profile(profile)
    options = parse_options(given)
    for name in names:
        backends.get(name).resolve_options(options)
    if options and not names:
        raise UsageError("--option needs --backend")
    with find_cases(case, corpus, data_set) as (store, found), stderr().status("replaying"):
        ready = _toolchains(found[0], names, python, device)
        option_sets = [_ReplayOptions(store, one, device, options, profile, repeats) for one in found]
        replayed = [[_replay(how, one) for one in ready] for how in option_sets]
    if as_json:
        echo(cases_to_json([*map(_as_json, found, replayed)]))
    else:
        for place, (one, runs) in enumerate(zip(found, replayed, strict=True)):
            if place:
                echo()
            _print(one, runs)
    at_fault = any(one.verdict.is_failure for runs in replayed for one in runs)
    return Exit.FOUND if at_fault else Exit.OK


def _toolchains(
    case: TestCase, names: tuple[str, ...], python: str, device: str | None
) -> list[ReadyToolchain]:
    """The named compilers, or those in `python` that take the case and the device."""
    ready = []
    kind = case.program.kind
    for name in compatible_backends(kind, names, device):
        try:
            ready.append(find_toolchain(name, python))
        except ProvisionError:
            if names:
                raise
    if not ready:
        wanted = f"{kind} programs" + (f" and {device}" if device else "")
        raise UsageError(f"{python} has no supported compiler for {wanted}; see `assay doctor`")
    return ready


@dataclass(frozen=True)
class _ReplayOptions:
    """What to run, and how."""

    store: Corpus
    case: TestCase
    device: str | None
    options: dict[str, str]
    profile: str
    repeats: int


def _replay(how: _ReplayOptions, toolchain: ReadyToolchain) -> Replayed:
    backend = backends.get(toolchain.spec.backend)
    shard = Shard(
        corpus=str(how.store.root.resolve()),
        cases=(how.case.id,),
        backend=toolchain.spec.backend,
        toolchain=toolchain.digest,
        python=toolchain.python,
        device=how.device or backend.devices[0],
        options=backend.non_default_options(how.options),
        profile=how.profile,
        fresh=True,
        repeats=how.repeats,
        ablate=True,
    )
    return Replayed(toolchain, run_shard(shard))


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
    console = stdout()
    origin = case.provenance
    operator = origin.operator or "no single operator"
    console.print(f"{origin.test or 'case'} ({operator}; {origin.library} {origin.version})")
    console.print(f"{case.id}\n")
    for one in replayed:
        _print_one(console, one)


def _print_one(console: Console, one: Replayed) -> None:
    outcome = next(outcome for outcome in one.outcomes if _matches(outcome, one.verdict))
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
        for line in describe_tolerance(mismatch):
            console.print(f"      {escape(line)}")
    if evidence.eagle:
        agree = "agree" if evidence.eagle == Verdict.PASS.value else "differ"
        console.print(f"    by EAGLE's bounds (atol 1e-2, rtol 1e-5) the sides {agree}")
    if evidence.component:
        console.print(f"  first fails at: [bold]{escape(evidence.component)}[/]")
    for options, verdict in evidence.ablation_runs:
        console.print(f"    {verdict:13} {escape(options)}")


def _matches(outcome: Outcome, verdict: Verdict) -> bool:
    return verdict in (outcome.verdict, Verdict.NONDETERMINISTIC)
