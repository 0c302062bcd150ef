"""Findings as SARIF 2.1.0, which GitHub shows as code scanning alerts.

What GitHub reads of a SARIF file: its documentation, "SARIF support for code scanning".
"""

from __future__ import annotations

from typing import Any

from bot.reports.run_findings import RunFinding, RunResult

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
#: GitHub shows no alert without a file. Where a run knows no line of the change, this is the file.
CONFIGURATION = ".github/assay.yml"
#: Results that GitHub shows of one run, "SARIF support for code scanning": the rest is ignored.
MAX_RESULTS = 5_000


def build_sarif(run: RunResult, version: str) -> dict[str, Any]:
    """One SARIF run: a rule and a result for each finding, which keeps its signature between runs."""
    findings = run.findings[:MAX_RESULTS]
    driver = {
        "name": "Assay",
        "semanticVersion": version,
        "rules": [_rule(one) for one in {one.signature: one for one in findings}.values()],
    }
    results = [_result(one) for one in findings]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}],
    }


def _rule(finding: RunFinding) -> dict[str, Any]:
    return {
        "id": finding.signature,
        "name": finding.signature,
        "shortDescription": {"text": finding.title},
        "fullDescription": {"text": finding.title},
        "help": {"text": finding.message},
    }


def _result(finding: RunFinding) -> dict[str, Any]:
    return {
        "ruleId": finding.signature,
        "level": "error" if finding.counts else "note",
        "message": {"text": f"{finding.title}\n{finding.message}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": CONFIGURATION},
                    "region": {"startLine": 1},
                }
            }
        ],
        # One alert while the same bug is found, wherever it is found.
        "partialFingerprints": {"assaySignature/v1": f"{finding.classification}:{finding.signature}"},
    }
