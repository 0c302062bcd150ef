"""A recurrent layer is its cell, step by step: in a loop of Python, and by torch's operator `scan`."""

from __future__ import annotations

from functools import partial

from fuzzing.cases import TestCase
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.rules.time_major import LAYERS
from fuzzing.equivalence.rules.time_major import draw as draw_layer
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

#: The documented equations of the cells, from a state of zeros.
_CELLS = """

def start(layer, sequence, level, direction):
    size = layer.proj_size or layer.hidden_size
    h, c = (sequence.new_zeros(sequence.shape[1], width) for width in (size, layer.hidden_size))
    suffix = f"_l{level}" + ("_reverse" if direction else "")
    names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"]
    w_ih, w_hh, b_ih, b_hh, projection = (getattr(layer, name + suffix, None) for name in names)
    linear, mode = torch.nn.functional.linear, layer.mode

    def step(state, x):
        h, c = state
        one, two = linear(x, w_ih, b_ih), linear(h, w_hh, b_hh)
        if mode == "LSTM":
            i, f, g, o = (one + two).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            return h if projection is None else linear(h, projection), c
        if mode == "GRU":
            (r, z, n), (hr, hz, hn) = one.chunk(3, 1), two.chunk(3, 1)
            z, n = (z + hz).sigmoid(), (n + (r + hr).sigmoid() * hn).tanh()
            return (1 - z) * n + z * h, c
        return torch.tanh(one + two) if mode == "RNN_TANH" else torch.relu(one + two), c

    return step, (h, c)


def levels(layer, sequence):
    sequence = sequence.transpose(0, 1) if layer.batch_first else sequence
    for level in range(layer.num_layers):
        ends = [steps(*start(layer, sequence, level, 0), sequence)]
        if layer.bidirectional:
            ends.append(steps(*start(layer, sequence, level, 1), sequence.flip(0)).flip(0))
        sequence = torch.cat(ends, 2)
    return sequence.transpose(0, 1) if layer.batch_first else sequence
"""
#: How the steps of one level are taken.
_STEPS = {
    "unrolled": """

def steps(step, state, sequence):
    outputs = []
    for x in sequence:
        state = step(state, x)
        outputs.append(state[0])
    return torch.stack(outputs)
""",
    "scan": """

def steps(step, state, sequence):
    try:
        from torch._higher_order_ops.scan import scan
    except ImportError:
        raise NotImplementedError("torch has no scan") from None

    def combine(state, x):
        h, c = step(state, x)
        return (h, c.clone()), h.clone()  # it refuses results that share memory

    return scan(combine, state, sequence)[1]
""",
}


def _apis() -> tuple[str, ...]:
    return LAYERS


def _draw(api: str, rng: Rng) -> TestCase:
    return draw_layer(api, rng)


def rewrite(subject: Subject, way: str) -> Sides | None:
    """The layer, and its cells."""
    if subject.api not in LAYERS or len(subject.names) != 1:
        return None
    name = subject.names[0]
    if len(subject.tensors[name].shape) != 3:
        return None
    right = subject.program(f"levels(self.layer, {name})", helpers=_STEPS[way] + _CELLS)
    return Sides(subject.program(f"self.layer({name})[0]"), right)


register_rule("unrolled", equation="rnn(i) = cell(…cell(cell(0, i₁), i₂)…)", apis=_apis, draw=_draw)(
    partial(rewrite, way="unrolled")
)
register_rule("scan", equation="rnn(i) = scan(cell, 0, i)", apis=_apis, draw=_draw, compiles=True)(
    partial(rewrite, way="scan")
)
