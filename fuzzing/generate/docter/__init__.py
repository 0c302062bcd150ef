"""DocTer: constraints of an API's parameters, read from its documentation, and calls drawn from them.

record = constraints("torch.nn.Conv2d")
call = draw(record, Random(0), Mode.CONFORMING)
check(call)       # () for a conforming call
call.case(provenance)
"""

from fuzzing.generate.docter.calls import Call
from fuzzing.generate.docter.checker import Violation, check
from fuzzing.generate.docter.drawing import Mode, NoDrawError, draw
from fuzzing.generate.docter.extract import constraints
from fuzzing.generate.docter.profiles import PAPER, TAME, Profile
from fuzzing.generate.docter.record import Record

__all__ = [
    "PAPER",
    "TAME",
    "Call",
    "Mode",
    "NoDrawError",
    "Profile",
    "Record",
    "Violation",
    "check",
    "constraints",
    "draw",
]
