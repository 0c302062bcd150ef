"""A call that was captured, saved and loaded computes the same: the formats that outlive a process.

Both formats hold the operators of the call with their arguments, and the state of a module. Saving changes
neither, so a program and what is read back of it are one program.
"""

from __future__ import annotations

from functools import partial

from fuzzing.equivalence import api_lists
from fuzzing.equivalence.optimizers import EXPORT, capturing
from fuzzing.equivalence.rule import register_rule
from fuzzing.equivalence.rules.optimized import rewrite_by

_SAVED = "import io\nfile = io.BytesIO()\n{}.save(program, file)\nfile.seek(0)\n"
_ROUND_TRIPS = {
    "export": capturing(
        "torch.export",
        EXPORT,
        _SAVED.format("torch.export") + "return torch.export.load(file).module()(*inputs)",
    ),
    "script": capturing(
        "torch.jit.script",
        "program = torch.jit.script(call)",
        _SAVED.format("torch.jit") + "return torch.jit.load(file)(*inputs)",
    ),
}


for _name, _format in _ROUND_TRIPS.items():
    register_rule(
        f"saved-{_name}",
        equation=f"f(i) = load(save({_format.description}(f)))(i)",
        apis=api_lists.documented,
        compiles=True,
    )(partial(rewrite_by, optimizer=_format))
