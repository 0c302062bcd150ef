"""Oracles: from evidence to verdict."""

from fuzzing.oracles.compare import compare
from fuzzing.oracles.judging import BackendInfo, Ruling, Trial, judge, register_oracle
from fuzzing.oracles.profiles import Bounds, profile_named, register_profile
from fuzzing.oracles.reference import REFERENCE_BACKEND, reference_needed, with_expected

__all__ = [
    "REFERENCE_BACKEND",
    "BackendInfo",
    "Bounds",
    "Ruling",
    "Trial",
    "compare",
    "judge",
    "profile_named",
    "reference_needed",
    "register_oracle",
    "register_profile",
    "with_expected",
]
