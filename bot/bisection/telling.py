"""What a bisection found out, as JSON and in words."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from bot.bisection.probing import Probed, Probing, Question, tally
from bot.bisection.releases import Range
from bot.bisection.rule import Judgement
from bot.bisection.search import Answer, Judged, Kind
from bot.reports.templating import counted, seconds
from bot.reports.text import cut, one_line
from fuzzing.oracles.profiles import DEFAULT
from fuzzing.outcomes import Verdict

_SUMMARY = 96  # characters of what a release did, for a line of a terminal
_WORDS = {
    Judgement.CLEAN: ("✓", "clean"),
    Judgement.FAILING: ("✗", "fails"),
    Judgement.SKIPPED: ("–", "skipped"),
    Judgement.TROUBLE: ("!", "trouble"),
}


def told(
    question: Question,
    wanted: Range,
    releases: Sequence[str],
    answer: Answer,
    probing: Probing,
    took: float,
) -> dict[str, Any]:
    """The answer as one JSON object; `releases` in the order of the search, `took` in seconds.

    release  the one in which it changed; `before` is the one before it, by age
    untried  releases for which no time was left
    doubt    why the failing release of the two shows the bug though it words it otherwise, "" if it does not
    """
    cost = probing.cost
    clean, failing = (None if at is None else releases[at] for at in (answer.clean, answer.failing))
    before, release = (failing, clean) if question.fixed_by else (clean, failing)
    seen = [(probing.probed[at], judged) for at, judged in answer.judged.items()]
    rows = [
        _row(probing.probed[at], judged, worded=bool(probing.doubt(at)))
        for at, judged in answer.judged.items()
        if probing.probed[at].tried
    ]
    untried = [probed.release for probed, _ in seen if not probed.tried]
    between = [releases[at] for at in answer.between]
    if question.fixed_by:
        for told_by_age in (rows, between, untried):
            told_by_age.reverse()
    return {
        "case": question.case.id,
        "test": question.case.provenance.test,
        "backend": question.backend,
        "device": question.device,
        "options": dict(question.options),
        "profile": question.profile,
        "asked": "fixed by" if question.fixed_by else "since",
        "range": str(wanted),
        "kind": answer.kind.value,
        "release": release,
        "before": before,
        "between": between,
        "untried": untried,
        "confidence": answer.confidence,
        "rate": answer.rate,
        "doubt": "" if answer.failing is None else probing.doubt(answer.failing),
        "symptom": probing.wanted,
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


def _row(probed: Probed, judged: Judged, *, worded: bool) -> dict[str, Any]:
    counts = judged.counts
    summaries = [outcome.summary for outcome in probed.outcomes]
    return {
        "release": probed.release,
        "toolchain": probed.toolchain,
        "judgement": judged.judgement.value,
        "bad": counts.bad,
        "good": counts.good,
        "other": counts.other,
        "worded": worded,
        "infrastructure": counts.infrastructure,
        "verdicts": tally(probed.outcomes),
        "passed": any(outcome.verdict is Verdict.PASS for outcome in probed.outcomes),
        "summary": max(summaries, key=summaries.count) if summaries else "",
        "trouble": probed.trouble,
    }


def lines(answer: dict[str, Any]) -> list[str]:
    """What `told` says, for people: the answer, what it rests on, what it cost, and the releases tried."""
    cost = answer["cost"]
    replayed = f", {cost['replayed']} known from before" if cost["replayed"] else ""
    tried = f"tried {cost['probes']} of {counted(answer['releases'], 'release')}: "
    spent = f"{counted(cost['installs'], 'install')}, {counted(cost['runs'], 'run')}{replayed}"
    return [
        _answer(answer),
        *(f"  {line}" for line in _grounds(answer)),
        f"  {tried}{spent}, {seconds(cost['seconds'])}",
        "",
        *_table(answer["probed"]),
    ]


def command(answer: Mapping[str, Any]) -> str:
    """The command that asks the same again."""
    words = ["assay", "bisect", answer["case"][:16], "--releases", answer["range"]]
    words += ["--backend", answer["backend"]]
    words += ["--device", answer["device"]] if answer.get("device") else []
    for name, value in answer.get("options", {}).items():
        words += ["--option", f"{name}={value}"]
    words += ["--profile", answer["profile"]] if answer.get("profile", DEFAULT) != DEFAULT else []
    return shlex.join([*words, *(["--fixed-by"] if answer["asked"] == "fixed by" else [])])


def _answer(answer: dict[str, Any]) -> str:
    kind, where = Kind(answer["kind"]), answer["range"]
    package = where.partition(":")[0]
    fixed = answer["asked"] == "fixed by"
    release, before = (answer[key] and f"{package} {answer[key]}" for key in ("release", "before"))
    if kind is Kind.ERROR:
        return f"{where}: no answer, for {_hindrance(answer)}"
    if kind is Kind.HORIZON and answer.get("untried"):
        known = f"{before} still fails" if fixed else f"{release} fails already"
        return f"{known}: the time was spent before a release was found that does not"
    if kind is Kind.HORIZON and fixed:
        return f"{before} still fails: nothing in {where} mended it"
    if kind is Kind.HORIZON:
        return f"{release} fails already: no older release in {where} is clean"
    if kind is Kind.NEVER:
        return f"{release or before} does not fail: there is no change to look for in {where}"
    if not (release and before):
        return f"{where}: it fails too seldom to be followed; raise the number of runs with --repeats"
    refused = any(row["release"] == answer["before"] and not row["passed"] for row in answer["probed"])
    verb = "stopped failing" if fixed else "began to fail"
    was = "still fails" if fixed else "refuses it" if refused else "does not fail"
    doubt = "perhaps " if kind is Kind.UNRELIABLE else ""
    if answer["between"]:
        return f"{doubt}{verb} after {before}, in {release} at the latest"
    return f"{doubt}{verb} in {release}; {before} {was}"


def _hindrance(answer: dict[str, Any]) -> str:
    for row in answer["probed"]:
        if row["judgement"] == Judgement.TROUBLE.value:
            return f"the machine failed at {row['release']}; mend it and begin again: what is known is kept"
    return "no release could be judged; the table says why"


def _grounds(answer: dict[str, Any]) -> list[str]:
    grounds = []
    unclear = [one for one in answer["between"] if one not in answer.get("untried", ())]
    if unclear:
        grounds.append(f"could not be judged: {', '.join(unclear)}")
    left = [one for one in answer["between"] if one in answer.get("untried", ())]
    if left:
        grounds.append(f"not tried, for the time was spent: {', '.join(left)}")
    if answer.get("doubt"):
        failing = answer["before" if answer["asked"] == "fixed by" else "release"]
        grounds.append(f"{failing} says it in other words; taken for the same: {answer['doubt']}")
    if answer["confidence"]:
        percent = min(99.9, int(answer["confidence"] * 1000) / 10)
        grounds.append(f"confidence {percent:g} %, at a rate of failure of {answer['rate']:.0%}")
    return grounds


def _table(rows: Sequence[dict[str, Any]]) -> list[str]:
    cells = [(*_WORDS[Judgement(row["judgement"])], row["release"], _verdicts(row)) for row in rows]
    widths = [max(len(cell[column]) for cell in cells) for column in range(4)] if cells else []
    shown = []
    for cell, row in zip(cells, rows, strict=True):
        columns = "  ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True))
        said = row["summary"] if row["judgement"] != "clean" or row["other"] else ""
        summary = cut(one_line(said or row["trouble"]), _SUMMARY)
        shown.append(f"  {columns}  {summary}".rstrip())
    return shown


def _verdicts(row: dict[str, Any]) -> str:
    another = " (something else)" if row["other"] and not row["bad"] else ""
    return f"{row['verdicts']}{' (in other words)' if row.get('worded') else another}"
