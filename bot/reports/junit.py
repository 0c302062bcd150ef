"""A run as JUnit XML, which most CI systems show as tests.

A test is an operator: a campaign has thousands of cases, of which only failing ones are listed. The format is
that of Jenkins' `junit-10.xsd`.
"""

from __future__ import annotations

from collections import defaultdict
from xml.etree import ElementTree as ET

from bot.reports.run_findings import RunFinding, RunResult

#: Verdicts of an operator whose test is skipped if it has no others.
_SKIPPED = {"unsupported", "invalid"}
#: Characters that XML 1.0 cannot hold, however escaped (its production 2, `Char`).
_NOT_XML = dict.fromkeys({*range(0x20), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF} - {9, 10, 13})


def build_junit(run: RunResult) -> bytes:
    """The XML document: a failure for each finding that fails the run, the others in `system-out`."""
    by_operator: dict[str, list[RunFinding]] = defaultdict(list)
    for finding in run.findings:
        by_operator[finding.operators[0] if finding.operators else ""].append(finding)
    suite = ET.Element("testsuite", name=_text(f"Assay: {run.compiler}"))
    names = sorted({*run.operators, *by_operator})
    tests = [_test(suite, run, name, by_operator[name]) for name in names]
    suite.set("tests", str(len(tests)))
    suite.set("failures", str(sum(one.find("failure") is not None for one in tests)))
    suite.set("skipped", str(sum(one.find("skipped") is not None for one in tests)))
    suite.set("errors", "0")
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    document: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _test(suite: ET.Element, run: RunResult, operator: str, findings: list[RunFinding]) -> ET.Element:
    verdicts = run.operators.get(operator, {})
    test = ET.SubElement(suite, "testcase", classname=_text(run.compiler), name=_text(operator) or "other")
    for finding in findings:
        if finding.counts:
            failure = ET.SubElement(
                test, "failure", message=_text(finding.title), type=finding.classification
            )
            failure.text = _text(finding.message)
    if not any(one.counts for one in findings) and verdicts and verdicts.keys() <= _SKIPPED:
        ET.SubElement(test, "skipped", message=", ".join(f"{n} {name}" for name, n in verdicts.items()))
    if others := [one for one in findings if not one.counts]:
        ET.SubElement(test, "system-out").text = "\n".join(
            _text(f"{one.title}\n{one.message}") for one in others
        )
    return test


def _text(text: str) -> str:
    return text.translate(_NOT_XML)
