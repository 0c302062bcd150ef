"""The issue about one bug: title, body and effect."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bot.errors import InternalError
from bot.github.limits import BODY_BUDGET, marker
from bot.reports import text
from bot.reports.issue_templates import IssueTemplate, template_for
from bot.reports.report import Group, Report, idempotency_key
from bot.reports.reproducer import pip_command
from bot.reports.templates import render
from bot.store.outbox import ISSUE
from fuzzing.cases.equivalent_pair import OneSidedError
from fuzzing.oracles.pair_sides import raised_error
from fuzzing.outcomes import Mismatch, Outcome, Phase, Verdict

MAX_TITLE = 120  # ours: what GitHub's issue list shows without wrapping
LABELS = ("assay",)
#: The frontend and the single operator at the start of a signature's title.
_SUBJECT = re.compile(r"^(\[\w+\]) (\w+): ")
#: Characters of a message above the details: what fits beside the script on one screen.
_SHORT_MESSAGE = 600

#: (characters of messages, of the program, rows of the case list), from most to least text.
_SIZES = ((4_000, 6_000, 20), (3_000, 3_000, 10), (1_500, 1_500, 5))


def issue_key(stable_name: str, signature: str) -> str:
    """The key of a bug's issue: one for each signature of a target, whichever campaign finds it."""
    return idempotency_key(ISSUE, stable_name, signature)


def issue_title(group: Group) -> str:
    """The signature's title with the prefix of the backend's form: `[ONNX][Split] conversion fails: …`."""
    prefix = _template_for(group).prefix
    tagged = _SUBJECT.sub(r"\1[\2] ", group.title)
    return prefix + text.title(tagged, MAX_TITLE - len(prefix))


def issue_labels(report: Report, group: Group, configured_labels: Sequence[str] = LABELS) -> list[str]:
    """The configured labels, then those of the backend's form."""
    return list(dict.fromkeys([*configured_labels, *_template_for(group).labels(report, group)]))


def _template_for(group: Group) -> IssueTemplate:
    return template_for(group.example.head.backend if group.example.head is not None else "")


def issue_body(report: Report, group: Group) -> str:
    """The issue as Markdown of at most BODY_BUDGET characters.

    Above the details: a sentence, the script, expected and actual, versions, and the failing component. If it
    is too long, texts are cut, then the script is left out: it is among the artifacts.
    """
    for script in (group.script, ""):
        for message, program, rows in _SIZES:
            body = _body(report, group, script, message, program, rows)
            if len(body) <= BODY_BUDGET:
                return body
    raise InternalError(f"an issue of {len(body)} characters about {group.signature}")


def _body(report: Report, group: Group, script: str, message: int, program: int, rows: int) -> str:
    outcome = group.example.head
    if outcome is None:
        raise InternalError(f"an issue about {group.signature}, which has no outcome at head")
    view = report.view
    toolchain = view.head_toolchain
    filename = group.guarded_filename if group.guarded else group.filename
    how = f"python {filename}" if group.script or not group.replay else group.replay
    if toolchain:
        how = f"{pip_command(toolchain, outcome.backend, group.frontend)}\n{how}"
    issue_template = _template_for(group)
    body = render(
        issue_template.template,
        **issue_template.fields(report, group),
        report=report,
        group=group,
        what=describe_failure(outcome, group.example.operator),
        expected=_expected(outcome, view.base_toolchain.label if view.base_toolchain else view.base[:12]),
        actual=_actual(outcome),
        said_above=len(_message(outcome)) <= _SHORT_MESSAGE
        and not (outcome.evidence.signal and outcome.evidence.message),
        logs=text.fence(text.cut(_message(outcome), _SHORT_MESSAGE)) if _message(outcome) else "—",
        program=text.cut(text.clean(group.program), program),
        script=script,
        how=how,
        artifact=f"reproducers/{group.filename}",
        versions=_versions(report),
        origin=_origin(group),
        message_limit=message,
        rows=rows,
    )
    return f"{collapse_blank_lines(body)}\n{marker(issue_key(view.stable_name, group.signature))}\n"


def describe_failure(outcome: Outcome, operator: str) -> str:
    """What the compiler does, as the end of a sentence that begins with its name."""
    if is_about_pair(outcome):
        two = f"two equal programs with {text.code(operator)}" if operator else "two equal programs"
        if outcome.verdict is Verdict.WRONG_RESULT:
            return f"gives different results for {two}"
        raised, _ = raised_error(outcome.evidence.error, outcome.evidence.message)
        return f"raises {text.code(raised)} for one of {two}"
    subject = f"a model with {text.code(operator)}" if operator else "a model"
    when = {
        Phase.IMPORT: "while it is imported",
        Phase.CONVERT: f"while it reads {subject}",
        Phase.COMPILE: f"while it compiles {subject}",
        Phase.RUN: f"while it runs {subject}",
    }[outcome.phase]
    evidence = outcome.evidence
    if outcome.verdict is Verdict.WRONG_RESULT:
        return f"gives a wrong result for {subject}"
    if outcome.verdict is Verdict.HANG:
        return f"does not end {when}"
    if outcome.verdict is Verdict.OUT_OF_MEMORY:
        return f"runs out of memory {when}"
    if evidence.signal:
        return f"dies of {text.code(evidence.signal)} {when}"
    return f"raises {text.code(evidence.error) if evidence.error else 'an error'} {when}"


def is_about_pair(outcome: Outcome) -> bool:
    """Whether two equal programs were compared, or only one of them raised."""
    evidence = outcome.evidence
    compared = any(one.judged for one in evidence.mismatches)
    return compared or evidence.error.rpartition(".")[2] == OneSidedError.__name__


def _expected(outcome: Outcome, base: str) -> str:
    base = text.plain(base)
    if is_about_pair(outcome) and outcome.verdict is not Verdict.WRONG_RESULT:
        return "Both programs run, as they are equal."
    if outcome.verdict is not Verdict.WRONG_RESULT:
        return f"The model compiles and runs, as with {base}."
    worst = next((one for one in outcome.evidence.mismatches if one.want and one.worst), None)
    if worst is None and is_about_pair(outcome):
        return "Equal outputs of both programs."
    if worst is None:
        return f"The outputs of the test's own library, which {base} gives."
    source = f"the {worst.other} program gives" if worst.judged else f"the test's own library and {base} give"
    return f"{_element(worst)} is {text.code(worst.want[:60])}, as {source} it."


def _actual(outcome: Outcome) -> str:
    mismatches = outcome.evidence.mismatches
    if outcome.verdict is Verdict.WRONG_RESULT and mismatches:
        worst = next((one for one in mismatches if one.got and one.worst), None)
        value = f"{_element(worst)} is {text.code(worst.got[:60])}: " if worst else ""
        return f"{value}{text.plain(text.one_line(outcome.summary).partition(', worst at')[0])}."
    message = text.cut(_message(outcome), _SHORT_MESSAGE)
    return f"\n\n{text.fence(message)}" if message else f"{text.plain(outcome.summary)}."


def _element(one: Mismatch) -> str:
    return text.code(f"{one.output}[{', '.join(map(str, one.worst))}]")


def _message(outcome: Outcome) -> str:
    """The error message without other output."""
    evidence = outcome.evidence
    if evidence.signal:
        return f"{evidence.signal}: {evidence.native}".strip(": \n")
    # The class of a pair's exception only says that it is about a pair; the message names the raised one.
    error = "" if is_about_pair(outcome) else evidence.error
    return ": ".join(part for part in (error, evidence.message) if part)


def _versions(report: Report) -> list[tuple[str, str, str]]:
    view = report.view
    head = dict(view.head_toolchain.versions) if view.head_toolchain else {}
    base = dict(view.base_toolchain.versions) if view.base_toolchain else {}
    rows = [(name, head.get(name, ""), base.get(name, "")) for name in sorted({*head, *base})]
    pythons = [tool.python if tool else "" for tool in (view.head_toolchain, view.base_toolchain)]
    return [("python", pythons[0], pythons[1]), *rows]


def _origin(group: Group) -> str:
    origin = group.origin
    if origin is None:
        return f"Test {text.code(group.example.test)}."
    license_name = f", licence {text.code(group.license_name)}" if group.license_name else ""
    seed = f", seed {origin.seed}" if origin.seed is not None else ""
    made = ", reduced by Assay" if origin.is_reduced else ""
    return (
        f"Test {text.code(origin.original_test())} of "
        f"{text.code(f'{origin.library} {origin.version}')}{license_name}, "
        f"source {text.code(origin.source)}{seed}{made}."
        f"{_FOUND_WHILE_REDUCING if group.found_by_reduction == group.cases else ''}"
    )


_FOUND_WHILE_REDUCING = " Found while a case of that test was reduced, which failed in another way."


def collapse_blank_lines(markdown: str) -> str:
    """Markdown without the runs of blank lines that templates leave, outside fenced blocks."""
    lines: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        mark = line[: len(line) - len(line.lstrip("`"))]
        if fence:
            fence = "" if line == fence else fence
        elif len(mark) >= 3:
            fence = mark
        elif not line.strip() and (not lines or not lines[-1]):
            continue
        lines.append(line if fence or mark else line.rstrip())
    return "\n".join(lines).strip("\n") + "\n"
