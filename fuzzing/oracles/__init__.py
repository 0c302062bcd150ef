"""Oracles: from evidence to verdict."""

from fuzzing.oracles.decision import BackendInfo, Decision, OracleInput, decide_outcome, register_oracle
from fuzzing.oracles.output_comparison import compare
from fuzzing.oracles.reference import needs_reference, with_reference
from fuzzing.oracles.tolerance_profiles import (
    Bounds,
    format_configuration,
    get_profile,
    profile_names,
    register_profile,
)

__all__ = [
    "BackendInfo",
    "Bounds",
    "Decision",
    "OracleInput",
    "compare",
    "decide_outcome",
    "format_configuration",
    "get_profile",
    "needs_reference",
    "profile_names",
    "register_oracle",
    "register_profile",
    "with_reference",
]
