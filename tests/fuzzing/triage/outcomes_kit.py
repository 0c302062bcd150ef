"""Outcomes of which signatures are computed."""

from __future__ import annotations

from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict


def wrong_result(kind: str = "value", detail: str = "", got: str = "1", want: str = "2") -> Outcome:
    """One output differs in this kind of way."""
    evidence = Evidence(mismatches=(Mismatch("y", kind, detail, got=got, want=want),))
    return Outcome("0" * 64, "openvino", "t", "CPU", Verdict.WRONG_RESULT, Phase.RUN, "s", evidence=evidence)
