"""Oracles: from evidence to verdict."""

from fuzzing.oracles.compare import compare
from fuzzing.oracles.judging import BackendInfo, Ruling, Trial, judge, register_oracle
from fuzzing.oracles.profiles import Bounds, configuration, profile_named, profiles, register_profile
from fuzzing.oracles.reference import reference_needed, with_expected

__all__ = [
    "BackendInfo",
    "Bounds",
    "Ruling",
    "Trial",
    "compare",
    "configuration",
    "judge",
    "profile_named",
    "profiles",
    "reference_needed",
    "register_oracle",
    "register_profile",
    "with_expected",
]
