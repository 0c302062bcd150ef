"""A recurrent layer is its cell, step by step."""

from __future__ import annotations

from fuzzing.cases import TestCase
from fuzzing.equivalence.rule import Sides, register_rule
from fuzzing.equivalence.rules.time_major import LAYERS
from fuzzing.equivalence.rules.time_major import draw as draw_layer
from fuzzing.equivalence.subject import Subject
from fuzzing.rng import Rng

_HELPER = """

def scan(layer, sequence, level, direction):
    suffix = f"_l{level}" + ("_reverse" if direction else "")
    names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
    w_ih, w_hh, b_ih, b_hh = (getattr(layer, name + suffix, None) for name in names)
    projection = getattr(layer, "weight_hr" + suffix, None)
    size = layer.proj_size or layer.hidden_size
    h, c = (sequence.new_zeros(sequence.shape[1], width) for width in (size, layer.hidden_size))
    linear, outputs = torch.nn.functional.linear, []
    for x in reversed(sequence) if direction else sequence:
        one, two = linear(x, w_ih, b_ih), linear(h, w_hh, b_hh)
        if layer.mode == "LSTM":
            i, f, g, o = (one + two).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            h = h if projection is None else linear(h, projection)
        elif layer.mode == "GRU":
            (r, z, n), (hr, hz, hn) = one.chunk(3, 1), two.chunk(3, 1)
            z, n = (z + hz).sigmoid(), (n + (r + hr).sigmoid() * hn).tanh()
            h = (1 - z) * n + z * h
        else:
            h = torch.tanh(one + two) if layer.mode == "RNN_TANH" else torch.relu(one + two)
        outputs.append(h)
    return torch.stack(outputs[::-1] if direction else outputs)


def unrolled(layer, sequence):
    sequence = sequence.transpose(0, 1) if layer.batch_first else sequence
    for level in range(layer.num_layers):
        ways = range(1 + layer.bidirectional)
        sequence = torch.cat([scan(layer, sequence, level, way) for way in ways], 2)
    return sequence.transpose(0, 1) if layer.batch_first else sequence
"""


def _apis() -> tuple[str, ...]:
    return LAYERS


def _draw(api: str, rng: Rng) -> TestCase:
    return draw_layer(api, rng)


@register_rule("unrolled", equation="rnn(i) = cell(…cell(cell(0, i₁), i₂)…)", apis=_apis, draw=_draw)
def rewrite(subject: Subject) -> Sides | None:
    """The documented equations of the cells, from a state of zeros."""
    if subject.api not in LAYERS or len(subject.names) != 1:
        return None
    name = subject.names[0]
    if len(subject.tensors[name].shape) != 3:
        return None
    right = subject.program(f"unrolled(self.layer, {name})", helpers=_HELPER)
    return Sides(subject.program(f"self.layer({name})[0]"), right)
