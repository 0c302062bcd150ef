"""How the outputs of an accepted draw can be compared, by running it once more in this process."""

from __future__ import annotations

import warnings

from fuzzing.cases import Comparison, TestCase
from fuzzing.generate.docter.extraction import extract_constraints
from fuzzing.torch_api.samples import observe_case


def observed_comparison(case: TestCase) -> Comparison:
    """By shapes if the call is random or returns uninitialized memory. Raises what torch raises.

    The draw must have run in a worker before, so that running it here is safe.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # modules warn of settings that are of no use
        observed = observe_case(case)
    record = extract_constraints(case.provenance.operator)
    return "shapes" if observed.random or record.uninitialized else "values"
