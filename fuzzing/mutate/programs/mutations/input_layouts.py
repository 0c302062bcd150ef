"""An input with the same elements in another memory layout, or two inputs in one piece of memory."""

from __future__ import annotations

import re

from fuzzing.mutate.programs.mutations import Parameters, Proposal, register_mutation
from fuzzing.mutate.programs.profile import TensorFacts
from fuzzing.mutate.programs.program_tree import ProgramTree, parse_statements

#: Layouts that a contiguous tensor does not have, which `view` refuses.
_STRIDED = ("transposed", "sliced", "channels_last")
_FUNCTION = "arrange"
#: Writes: methods that end with an underscore, assigned indices, out=.
_WRITE = re.compile(r"\w_\(|\] *[-+*/|&^]?=(?!=)|\bout=")


@register_mutation("input-layouts")
class InputLayouts:
    """Sound: each input has equal elements, and no operator's result depends on strides but by the order in
    which it adds; programs with `as_strided` are left out. A program with a view, which asks for certain
    strides, gets contiguous layouts only. Elements share memory in an expanded input alone, of which all are
    equal along the axis; only programs without writes get one, and later steps write to no such tensor.

    parameters: `place` of the input; `form`; `other`, the place of the input that shares its memory; `axis`,
    along which it is expanded.
    """

    exact = False

    def propose(self, proposal: Proposal) -> Parameters | None:
        """An input and a layout that it can have."""
        program, rng = proposal.program, proposal.rng
        # Parameters are numbered by their order; a program keeps those of its seed.
        names = program.forward_parameters
        point = proposal.profile.before(program.blocks[0], 0)
        if point is None or not names or any(name not in point for name in names) or _has_offsets(program):
            return None
        place = rng.below(len(names))
        facts = point[names[place]]
        others = [
            other
            for other, name in enumerate(names)
            if other != place and point[name].dtype == facts.dtype and point[name].values.numel()
        ]
        forms = [form for form in _forms(facts) if "view" not in program.text or form not in _STRIDED]
        if others and facts.values.numel():
            forms += ["shared", "shared"]
        axes = [] if "view" in program.text or _WRITE.search(program.text) else _constant_axes(facts)
        forms += ["expanded", "expanded"] if axes else []
        if not forms:
            return None
        form = rng.choice(forms)
        other = rng.choice(others) if form == "shared" else place
        return {"place": place, "form": form, "other": other, "axis": axes[0] if axes else 0}

    def apply(self, program: ProgramTree, number: int, parameters: Parameters) -> ProgramTree | None:
        """The function that arranges the inputs, before `forward`; None if there is one."""
        del number
        if f"def {_FUNCTION}(" in program.text or _has_offsets(program):
            return None
        given, other = f"given[{parameters['place']}]", f"given[{parameters['other']}]"
        body = _LAYOUTS[parameters["form"]].format(given=given, other=other, axis=parameters["axis"])
        lines = ["given = [tensor.clone() for tensor in inputs.values()]", *body.split("\n"), "return given"]
        text = "".join(f"    {line}\n" for line in lines)
        return program.insert_before_forward(parse_statements(f"def {_FUNCTION}(inputs):\n{text}"))


_LAYOUTS = {
    "transposed": "{given} = {given}.transpose(0, -1).contiguous().transpose(0, -1)",
    "sliced": "{given} = torch.stack([{given}, {given}], dim=-1)[..., 0]",
    "channels_last": "{given} = {given}.contiguous(memory_format=torch.channels_last)",
    "offset": "{given} = torch.cat([{given}, {given}])[{given}.shape[0]:]",
    "expanded": "{given} = {given}.narrow({axis}, 0, 1).expand({given}.shape)",
    "unit": "steps = [0 if size == 1 else step for size, step in zip({given}.shape, {given}.stride())]\n"
    "{given} = {given}.as_strided({given}.shape, steps)",
    "shared": "memory = torch.cat([{given}.reshape(-1), {other}.reshape(-1)])\n"
    "first, second = memory.split([{given}.numel(), {other}.numel()])\n"
    "{given}, {other} = first.reshape({given}.shape), second.reshape({other}.shape)",
}


def _constant_axes(facts: TensorFacts) -> list[int]:
    """The axes along which all of several elements are equal."""
    return [
        axis
        for axis, length in enumerate(facts.shape)
        if length > 1 and bool((facts.values == facts.values.narrow(axis, 0, 1)).all())
    ]


def _has_offsets(program: ProgramTree) -> bool:
    """Whether it names places in memory, not elements."""
    return "as_strided" in program.text


def _forms(facts: TensorFacts) -> list[str]:
    """The layouts for a tensor of this shape."""
    forms = ["sliced"]
    if len(facts.shape) >= 1:
        forms.append("offset")
    if len(facts.shape) >= 2:
        forms.append("transposed")
    if len(facts.shape) == 4:
        forms.append("channels_last")
    if 1 in facts.shape:
        forms.append("unit")
    return forms
