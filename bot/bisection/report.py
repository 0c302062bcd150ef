"""The result of a bisection, as JSON and as text."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bot.bisection.commit_range import CommitRange
from bot.bisection.decision_rule import RevisionStatus
from bot.bisection.release_probe import BisectionQuery, ReleaseProbe, ReleaseResult, tally
from bot.bisection.releases import Range
from bot.bisection.search import BisectionResult, ClassifiedRevision, ResultKind
from bot.reports.templates import pluralize, seconds
from bot.reports.text import cut, one_line
from fuzzing.oracles.tolerance_profiles import DEFAULT
from fuzzing.outcomes import Verdict

_SUBJECT = 80  # characters of a commit's subject
_LISTED = 8  # of commits that could not be judged
_SUMMARY = 96  # characters of what a release did, for a line of a terminal
_SKIPPED = 12  # of releases or commits that were skipped, in the table
_TOOLCHAINS = {
    "overlay": "The Python sources of each commit were laid over {over}",
    "source": "Each commit was built by the commands of the configuration",
    "artifact": "The wheel that the repository's CI built of each commit was installed",
    "index": "The last nightly wheel from before each commit was installed",
    "release": "The release that each commit pins was installed",
}
_STATUS_LABELS = {
    RevisionStatus.CLEAN: ("✓", "clean"),
    RevisionStatus.FAILING: ("✗", "fails"),
    RevisionStatus.SKIPPED: ("–", "skipped"),
    RevisionStatus.INFRASTRUCTURE: ("!", "no result"),
}


def result_to_json(
    query: BisectionQuery,
    wanted: Range | CommitRange,
    releases: Sequence[str],
    answer: BisectionResult,
    release_probe: ReleaseProbe,
    took: float,
) -> dict[str, Any]:
    """The result as one JSON object; `releases` in search order, `took` in seconds.

    release  the one in which it changed; `before`: the release before it
    untried  releases for which no time was left
    doubt    why the other failure of the failing release counts as the bug, "" if it shows the bug itself
    """
    cost = release_probe.cost
    clean, failing = (None if at is None else releases[at] for at in (answer.clean, answer.failing))
    before, release = (failing, clean) if query.fixed_by else (clean, failing)
    seen = [(release_probe.probed[at], classified) for at, classified in answer.classified.items()]
    rows = [
        _row(release_probe.probed[at], classified, any_reworded=release_probe.is_reworded(at))
        for at, classified in answer.classified.items()
        if release_probe.probed[at].tried
    ]
    untried = [probed.release for probed, _ in seen if not probed.tried]
    between = [releases[at] for at in answer.between]
    if query.fixed_by:
        for listed in (rows, between, untried):
            listed.reverse()
    return {
        "case": query.case.id,
        "test": query.case.provenance.test,
        "backend": query.backend,
        "device": query.device,
        "options": dict(query.options),
        "profile": query.profile,
        "asked": "fixed by" if query.fixed_by else "since",
        "range": str(wanted),
        "kind": answer.kind.value,
        "release": release,
        "before": before,
        "between": between,
        "untried": untried,
        "confidence": answer.confidence,
        "rate": answer.rate,
        "doubt": "" if answer.failing is None else release_probe.doubt(answer.failing),
        "symptom": release_probe.wanted,
        "releases": len(releases),
        "cost": {
            "probes": len(rows),
            "installs": cost.installs,
            "runs": cost.runs,
            "replayed": cost.replayed,
            "seconds": took,
        },
        "probed": rows,
    }


def _row(probed: ReleaseResult, classified: ClassifiedRevision, *, any_reworded: bool) -> dict[str, Any]:
    counts, spec = classified.counts, probed.spec
    summaries = [outcome.summary for outcome in probed.outcomes]
    return {
        "release": probed.release,
        "toolchain": spec.digest if spec else "",
        "provisioner": spec.provisioner if spec and probed.outcomes else "",
        "made": spec.label if spec and probed.outcomes else "",
        "passed_over": list(probed.passed_over),
        "judgement": classified.status.value,
        "bad": counts.bad,
        "good": counts.good,
        "other": counts.other,
        "worded": any_reworded,
        "infrastructure": counts.infrastructure,
        "verdicts": tally(probed.outcomes),
        "passed": any(outcome.verdict is Verdict.PASS for outcome in probed.outcomes),
        "summary": max(summaries, key=summaries.count) if summaries else "",
        "trouble": probed.failure,
    }


def format_lines(answer: dict[str, Any]) -> list[str]:
    """The result as text: answer, evidence, cost, and a table of the releases or commits tried."""
    cost, noun = answer["cost"], "commit" if "commits" in answer else "release"
    replayed = f", {cost['replayed']} known from before" if cost["replayed"] else ""
    tried = f"tried {cost['probes']} of {pluralize(answer['releases'], noun)}: "
    spent = f"{pluralize(cost['installs'], 'install')}, {pluralize(cost['runs'], 'run')}{replayed}"
    return [
        _headline(answer),
        *(f"  {line}" for line in _evidence_lines(answer)),
        f"  {tried}{spent}, {seconds(cost['seconds'])}",
        "",
        *_table(answer["probed"], commits="commits" in answer),
    ]


def describe_toolchains(answer: Mapping[str, Any]) -> str:
    """How the releases or commits that were tried became toolchains, in one sentence without its end."""
    if "commits" not in answer:
        return "Each release was installed into a clean environment"
    made = Counter(row.get("provisioner", "") for row in answer["probed"])
    ways = {name: count for name, count in made.items() if name}
    if len(ways) > 1:
        return f"The commits were made by {', '.join(f'{name} ({count})' for name, count in ways.items())}"
    way = next(iter(ways), "overlay" if answer.get("over") else "")
    if not way:
        return "No commit could be made"
    return _TOOLCHAINS.get(way, f"Each commit was made by {way}").format(over=answer.get("over", ""))


def rerun_command(answer: Mapping[str, Any]) -> str:
    """The command that repeats the bisection."""
    words = ["assay", "bisect", answer["case"][:16]]
    words += ["--repo", ".", "--commits"] if "commits" in answer else ["--releases"]
    words += [answer["range"]]
    words += ["--backend", answer["backend"]]
    words += ["--device", answer["device"]] if answer.get("device") else []
    for name, value in answer.get("options", {}).items():
        words += ["--option", f"{name}={value}"]
    words += ["--profile", answer["profile"]] if answer.get("profile", DEFAULT) != DEFAULT else []
    return shlex.join([*words, *(["--fixed-by"] if answer["asked"] == "fixed by" else [])])


def _headline(answer: dict[str, Any]) -> str:
    kind, where = ResultKind(answer["kind"]), answer["range"]
    noun = "commit" if "commits" in answer else "release"
    fixed = answer["asked"] == "fixed by"
    release, before = (_named(answer, key) for key in ("release", "before"))
    if kind is ResultKind.ERROR:
        return f"{where}: no answer: {_error_reason(answer)}"
    if kind is ResultKind.HORIZON and answer.get("untried"):
        known = f"{before} still fails" if fixed else f"{release} fails already"
        return f"{known}: the time limit was reached before a release that does not"
    if kind is ResultKind.HORIZON and fixed:
        return f"{before} still fails: no {noun} in {where} fixes it"
    if kind is ResultKind.HORIZON:
        return f"{release} fails already: no older {noun} in {where} is clean"
    if kind is ResultKind.NEVER:
        return f"{release or before} does not fail: no change in {where}"
    if not (release and before):
        return f"{where}: it fails too rarely to follow; raise the number of runs with --repeats"
    refused = any(row["release"] == answer["before"] and not row["passed"] for row in answer["probed"])
    verb = "stopped failing" if fixed else "began to fail"
    was = "still fails" if fixed else "refuses it" if refused else "does not fail"
    hedge = "perhaps " if kind is ResultKind.UNRELIABLE or is_doubtful(answer) else ""
    if answer["between"]:
        return f"{hedge}{verb} after {before}, in {release} at the latest"
    return f"{hedge}{verb} in {release}; {before} {was}"


def is_doubtful(answer: Mapping[str, Any]) -> bool:
    """Whether the change may be of how the two commits that are named were made."""
    return bool(answer.get("across_wheels") or answer.get("across_provisioners"))


def _named(answer: Mapping[str, Any], key: str) -> str:
    """The release or commit that a key of the result names, "" if none."""
    if "commits" in answer:
        return _describe(answer["commits"][key], whole=key == "release") if answer[key] else ""
    return f"{answer['range'].partition(':')[0]} {answer[key]}" if answer[key] else ""


def _describe(commit: Mapping[str, Any], *, whole: bool) -> str:
    """A commit for people, with its author and pull request if it is the one that is named."""
    name = f"commit {_short(commit['sha'])}"
    if not whole:
        return name
    pull = f", pull request #{commit['pull_request']}" if commit["pull_request"] else ""
    merged = f", merged by {_short(commit['merge'])}" if commit.get("merge") else ""
    return f"{name} ({cut(commit['subject'], _SUBJECT)}; by {commit['author']}{pull}{merged})"


def _short(sha: str) -> str:
    return sha[:12]


def _error_reason(answer: dict[str, Any]) -> str:
    for row in answer["probed"]:
        if row["judgement"] == RevisionStatus.INFRASTRUCTURE.value:
            return f"infrastructure failed at {row['release']}; fix it and run again: finished runs are kept"
    return "no release could be judged; the table says why"


def _evidence_lines(answer: dict[str, Any]) -> list[str]:
    grounds = []
    name = _short if "commits" in answer else str
    unclear = [one for one in answer["between"] if one not in answer.get("untried", ())]
    if wheels := answer.get("wheels"):
        number = len(answer["between"]) + 1
        grounds.append(f"{pluralize(number, 'commit')} between the wheels {wheels[0]} and {wheels[1]}")
    elif unclear:
        more = f" and {len(unclear) - _LISTED} more" if len(unclear) > _LISTED else ""
        grounds.append(f"could not be judged: {', '.join(map(name, unclear[:_LISTED]))}{more}")
    if answer.get("across_wheels"):
        grounds.append("the two commits work over different wheels only: the change may be of the wheels")
    if answer.get("across_provisioners"):
        grounds.append("the two commits were made differently: the change may be of that")
    if answer.get("compared_by"):
        grounds.append(
            f"they were made differently, and both by {answer['compared_by']} with the same result"
        )
    left = [one for one in answer["between"] if one in answer.get("untried", ())]
    if left:
        grounds.append(f"not tried within the time limit: {', '.join(left)}")
    if answer.get("doubt"):
        failing = answer["before" if answer["asked"] == "fixed by" else "release"]
        grounds.append(f"{name(failing)} {answer['doubt']}")
    if answer["confidence"]:
        percent = min(99.9, int(answer["confidence"] * 1000) / 10)
        grounds.append(f"confidence {percent:g} %, at a rate of failure of {answer['rate']:.0%}")
    if "commits" in answer:
        sentence = describe_toolchains(answer)
        grounds.append(f"{sentence[0].lower()}{sentence[1:]}")
    grounds += [f"before, by {one['stage']}: {_headline(one)}" for one in answer.get("earlier", ())]
    grounds += [f"not by {cut(one_line(why), 2 * _SUMMARY)}" for why in answer.get("passed_over", ())]
    return grounds


def _table(rows: Sequence[dict[str, Any]], *, commits: bool) -> list[str]:
    """A line for each release or commit that was tried; of those skipped only the first ones."""
    skipped = [row for row in rows if row["judgement"] == RevisionStatus.SKIPPED.value]
    left_out = [id(row) for row in skipped[_SKIPPED:]]
    listed = [row for row in rows if id(row) not in left_out]
    cells = [
        (
            *_STATUS_LABELS[RevisionStatus(row["judgement"])],
            *((_short(row["release"]), _maker(row)) if commits else (row["release"],)),
            _verdicts(row),
        )
        for row in listed
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    shown = []
    for cell, row in zip(cells, listed, strict=True):
        columns = "  ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True))
        message = row["summary"] if row["judgement"] != "clean" or row["other"] else ""
        summary = cut(one_line(message or row["trouble"]), _SUMMARY)
        shown.append(f"  {columns}  {summary}".rstrip())
    return [*shown, f"  and {len(left_out)} more skipped"] if left_out else shown


def _maker(row: Mapping[str, Any]) -> str:
    """What made the toolchain of a commit; of wheels of an index, which one."""
    provisioner = str(row.get("provisioner", ""))
    return str(row["made"]) if provisioner in ("index", "release") else provisioner


def _verdicts(row: dict[str, Any]) -> str:
    another = " (something else)" if row["other"] and not row["bad"] else ""
    return f"{row['verdicts']}{' (reworded)' if row.get('worded') else another}"
