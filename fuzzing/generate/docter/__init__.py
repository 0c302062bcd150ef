"""DocTer: constraints of an API's parameters, read from its documentation, and calls drawn from them.

record = extract_constraints("torch.nn.Conv2d")
call = draw(record, Random(0), Mode.CONFORMING)
find_violations(call)       # () for a conforming call
call.case(provenance)
"""

from fuzzing.generate.docter.call_generator import Mode, NoDrawError, draw
from fuzzing.generate.docter.calls import Call
from fuzzing.generate.docter.checker import Violation, find_violations
from fuzzing.generate.docter.extraction import extract_constraints
from fuzzing.generate.docter.record import Record
from fuzzing.generate.docter.value_profiles import PAPER, TAME, Profile

__all__ = [
    "PAPER",
    "TAME",
    "Call",
    "Mode",
    "NoDrawError",
    "Profile",
    "Record",
    "Violation",
    "draw",
    "extract_constraints",
    "find_violations",
]
