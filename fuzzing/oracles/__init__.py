"""Oracles: from evidence to verdict."""

from fuzzing.oracles.decision import BackendInfo, Decision, OracleInput, decide_outcome, register_oracle
from fuzzing.oracles.output_comparison import compare
from fuzzing.oracles.reference import needs_reference, with_reference
from fuzzing.oracles.tolerance_profiles import Bounds, configuration, get_profile, profiles, register_profile

__all__ = [
    "BackendInfo",
    "Bounds",
    "Decision",
    "OracleInput",
    "compare",
    "configuration",
    "decide_outcome",
    "get_profile",
    "needs_reference",
    "profiles",
    "register_oracle",
    "register_profile",
    "with_reference",
]
