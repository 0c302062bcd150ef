"""Confirming failures: what fails at head and passes at base is repeated in fresh processes on both sides.

The step `running` confirms a few while most cases have still to run, the step `confirming` the others. Both
are charged to the budget of the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from bot.campaigns.classify.classification import CaseResults, RerunCounts, classify
from bot.campaigns.classify.resource_failures import RETRY_LIMIT_FACTOR, needs_rerun
from bot.campaigns.context import Context
from bot.campaigns.provenance import origin
from bot.campaigns.run.out_of_reach import explain_failures
from bot.campaigns.run.repeats import growing_groups, one_of_each, repeat, signature_key
from bot.campaigns.run.shards import Environment, ShardOptions, load_outcomes, run_pending
from bot.campaigns.services import Config
from bot.store import outcomes
from bot.store.campaigns import Session
from bot.store.models import CampaignState, Classification, Side
from fuzzing.outcomes import Outcome, Verdict

STEP = CampaignState.CONFIRMING.value
ACCUSING = tuple(verdict for verdict in Verdict if verdict.is_failure)


def confirm_first(context: Context, config: Config, head: Environment, base: Environment) -> None:
    """Confirms one failure that was not repeated before, of a new signature if there is one.

    No hang: repeating it takes longer than most campaigns need for their cases.
    """
    firsts, others, _ = _by_signature(context, head, _regressed_cases(context, config, head, base))
    with context.reading() as (session, campaign):
        repeated = outcomes.agreement(session, campaign.id, head.side, head.key)
    first = islice((case for case in (*firsts, *others) if case not in repeated), 1)
    _confirm(context, config, head, base, list(first))


def confirm_all(context: Context, config: Config, head: Environment, base: Environment) -> None:
    """Confirms one failure of each signature, and the others of signatures that this does not confirm, within
    the budget.

    Both sides of a few are repeated before the next ones: half of the evidence accuses nobody. Hangs come
    last, as each takes minutes.
    """
    by_signature = _by_signature(context, head, _regressed_cases(context, config, head, base))
    at_head = load_outcomes(context, head, [case for cases in by_signature for case in cases])
    for cases in by_signature:
        with context.reading() as (session, campaign):  # one of the firsts may be confirmed already
            needed = needed_repeats(context, session, campaign.id, config.repeats, head, base)
        wanted = [case for case in cases if needed(at_head[case])]
        for group in growing_groups(wanted, context.settings.workers):
            _confirm(context, config, head, base, group)


def needed_repeats(
    context: Context,
    session: Session,
    campaign_id: int,
    repeats: int,
    head: Environment,
    base: Environment | None,
) -> Callable[[Outcome], int]:
    """Failure at head → fresh runs on each side without which it is not confirmed: none if another case with
    its signature is, else `repeats`.

    A converter that breaks fails a hundred cases in one way, and one of them is the evidence for the bug.
    Hangs and out-of-memory failures may be the machine's, each of them anew.
    """
    confirmed = (
        _repeated_failures(session, campaign_id, repeats, head)
        if base is None
        else confirmed_regressions(session, campaign_id, repeats, head, base)
    )
    signatures = {signature_key(context, outcome) for outcome in confirmed.values()}

    def needed(at_head: Outcome) -> int:
        if not signatures or not at_head.verdict.is_failure or needs_rerun(at_head):
            return repeats
        return 0 if signature_key(context, at_head) in signatures else repeats

    return needed


def repeat_failures(context: Context, config: Config, head: Environment, cases: Sequence[str]) -> None:
    """Repeats failures at head, and looks for the component at fault.

    Hangs and out-of-memory failures come last. They run alone first, with higher limits; those that pass are
    not repeated. Where no cases are reduced, the first repeat of one case of each signature has an
    interpreter that is not forked: no bug must be one of forking. Else that case is a reduced one.
    """
    at_head = load_outcomes(context, head, list(cases))
    unforked = frozenset() if config.reduction.cases else one_of_each(context, at_head.values())
    options = ShardOptions(head, STEP, config.budget, ablate=True, unforked=unforked)
    suspicious = [case for case in cases if case in at_head and needs_rerun(at_head[case])]
    repeat(context, config, options, [case for case in cases if case not in suspicious])
    alone = replace(options, ablate=False, limit_factor=RETRY_LIMIT_FACTOR)
    repeat(context, config, alone, suspicious, runs=1)
    with context.reading() as (session, campaign):
        runs = outcomes.agreement(session, campaign.id, head.side, head.key)
    again = replace(options, unforked=frozenset())
    repeat(context, config, again, [case for case in suspicious if runs.get(case) == (1, 1)])


def confirmed_regressions(
    session: Session, campaign_id: int, repeats: int, head: Environment, base: Environment
) -> dict[str, Outcome]:
    """Case → outcome at head, of the regressions that `repeats` runs confirm."""
    head_runs = outcomes.agreement(session, campaign_id, Side.HEAD, head.key)
    base_runs = outcomes.agreement(session, campaign_id, Side.BASE, base.key)
    found = {}
    for case in head_runs.keys() & base_runs.keys():
        at_head, at_base = (outcomes.get(session, case, one.key) for one in (head, base))
        if at_head is None or not at_head.verdict.is_failure:
            continue
        runs = RerunCounts(*head_runs[case]), RerunCounts(*base_runs[case])
        seen = classify(CaseResults(at_head, at_base, *runs, repeats=repeats, compared=True))
        if seen is not None and seen.classification is Classification.REGRESSION:
            found[case] = at_head
    return found


def _repeated_failures(
    session: Session, campaign_id: int, repeats: int, head: Environment
) -> dict[str, Outcome]:
    """Case → outcome at head, of the failures that all of at least `repeats` fresh runs show."""
    runs = outcomes.agreement(session, campaign_id, Side.HEAD, head.key)
    steady = [case for case, (agreed, total) in runs.items() if repeats <= agreed == total]
    found = ((case, outcomes.get(session, case, head.key)) for case in steady)
    return {case: outcome for case, outcome in found if outcome is not None and outcome.verdict.is_failure}


def _regressed_cases(context: Context, config: Config, head: Environment, base: Environment) -> list[str]:
    """Runs base on what fails at head; the cases that pass there, and that head's toolchain can judge."""
    run_pending(context, config, ShardOptions(base, STEP, config.budget), head.key, ACCUSING)
    with context.reading() as (session, campaign):
        regressed = [
            at_head
            for at_head, at_base in outcomes.outcome_pairs(session, campaign.id, head.key, base.key)
            if at_head.verdict.is_failure and at_base is not None and at_base.verdict is Verdict.PASS
        ]
    out_of_reach = explain_failures(context, config, head, regressed)
    return [one.case for one in regressed if one.case not in out_of_reach]


def _by_signature(
    context: Context, head: Environment, cases: Sequence[str]
) -> tuple[list[str], list[str], list[str]]:
    """One case of each signature, the smallest, as the report's example is; the others; and those that need
    more time or memory, one of each signature before others.
    """
    seen = load_outcomes(context, head, list(cases))
    signatures = {case: signature_key(context, seen[case]) for case in cases if case in seen}
    smallest: dict[str, str] = {}
    for case, signature in signatures.items():
        there = smallest.setdefault(signature, case)
        smallest[signature] = min(there, case, key=lambda one: (origin(context.corpus, one).size, one))
    firsts = list(smallest.values())
    others = [case for case, signature in signatures.items() if smallest[signature] != case]
    suspicious = [case for case in (*firsts, *others) if needs_rerun(seen[case])]
    plain_firsts, plain_others = (
        [case for case in group if case not in suspicious] for group in (firsts, others)
    )
    return plain_firsts, plain_others, suspicious


def _confirm(
    context: Context, config: Config, head: Environment, base: Environment, cases: list[str]
) -> None:
    """Repeats cases at head, then at base those that failed alike there; tells which are new regressions."""
    before = _regressions(context, config, head, base)
    repeat_failures(context, config, head, cases)
    with context.reading() as (session, campaign):
        runs = outcomes.agreement(session, campaign.id, head.side, head.key)
    agreed = [case for case in cases if config.repeats <= runs.get(case, (0, 0))[1] == runs[case][0]]
    repeat(context, config, ShardOptions(base, STEP, config.budget), agreed)
    after = _regressions(context, config, head, base)
    new = [after[case] for case in cases if case in after.keys() - before.keys()]
    if new:
        more = f" (and {len(new) - 1} more)" if len(new) > 1 else ""
        line = f"regression: {origin(context.corpus, new[0].case).test}: {new[0].summary}{more}"
        context.progress(0, 0, line, lasting=True)


def _regressions(
    context: Context, config: Config, head: Environment, base: Environment
) -> dict[str, Outcome]:
    with context.reading() as (session, campaign):
        return confirmed_regressions(session, campaign.id, config.repeats, head, base)
