"""RNN, GRU and LSTM according to the ONNX operator reference, with all attributes and inputs.

Corrections as in `corrections`. Computed in float64 and rounded once, at the end. numpy only.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

#: A cell: (input of a step, states before it) → states after it; the first state is the output.
Step = Callable[[Any, List[Any]], List[Any]]
#: One activation function, whatever its parameters.
Activation = Callable[[Any], Any]

#: "Activation functions", with alpha and beta. The text uses several spellings of one function.
_ACTIVATIONS: Dict[str, Callable[[Any, float, float], Any]] = {
    "relu": lambda x, *_: np.maximum(x, 0),
    "tanh": lambda x, *_: np.tanh(x),
    "sigmoid": lambda x, *_: _sigmoid(x),
    "affine": lambda x, alpha, beta: alpha * x + beta,
    "leakyrelu": lambda x, alpha, _: np.where(x >= 0, x, alpha * x),
    "thresholdedrelu": lambda x, alpha, _: np.where(x >= alpha, x, 0),
    "scaledtanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    "hardsigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "elu": lambda x, alpha, _: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "softsign": lambda x, *_: x / (1 + np.abs(x)),
    "softplus": lambda x, *_: np.logaddexp(0, x),
}
#: "Default values are the same as of corresponding ONNX operators": alpha and beta of those that have any.
#: Affine and ScaledTanh are not ONNX operators and have no defaults; neutral values are used.
_PARAMETERS = {
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01, 0.0),
    "thresholdedrelu": (1.0, 0.0),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, 0.0),
}


def _sigmoid(x: Any) -> Any:
    return np.exp(-np.logaddexp(0, -x))


def _activations(
    attributes: Mapping[str, Any], usual: Sequence[str], directions: int, clip: Optional[float]
) -> List[List[Activation]]:
    """The activations of each direction, as many as `usual` has.

    More are given where RNN's "default" has two but one direction needs one.

    "The values are consumed in the order of activation functions"; clip "is applied to the input of
    activations".
    """
    first = iter(attributes.get("activation_alpha") or ())
    second = iter(attributes.get("activation_beta") or ())
    size, found = len(usual), []
    for name in (attributes.get("activations") or list(usual) * directions)[: size * directions]:
        key = name.lower()
        alpha, beta = _PARAMETERS.get(key, (0.0, 0.0))
        if key in _PARAMETERS:
            alpha = next(first, alpha)
        if key in ("affine", "scaledtanh", "hardsigmoid"):
            beta = next(second, beta)
        found.append(_clipped(_ACTIVATIONS[key], alpha, beta, clip))
    return [found[at * size : (at + 1) * size] for at in range(directions)]


def _clipped(
    function: Callable[[Any, float, float], Any], alpha: float, beta: float, clip: Optional[float]
) -> Activation:
    return lambda x: function(_bounded(x, clip or np.inf), alpha, beta)


def _bounded(x: Any, bound: float) -> Any:
    return np.clip(x, -bound, bound)


class _Layer:
    """The inputs shared by the three operators, in float64 with the time axis first."""

    def __init__(self, inputs: Sequence[Any], attributes: Mapping[str, Any], states: int, gates: int) -> None:
        """`states` initial states follow the common inputs."""
        x, w, r, b, lengths, *begin = (*inputs, *(None,) * 7)[: 5 + states]
        self.dtype = x.dtype
        self.layout = attributes.get("layout") or 0
        self.x = _wide(np.swapaxes(x, 0, 1) if self.layout else x)
        self.w, self.r = _wide(w), _wide(r)
        self.steps, self.batch, _ = self.x.shape
        self.count, self.size = self.r.shape[0], self.r.shape[2]
        self.b = np.zeros((self.count, 2 * gates * self.size)) if b is None else _wide(b)
        self.lengths = np.full(self.batch, self.steps) if lengths is None else np.asarray(lengths)
        self.backward = [False, True] if self.count == 2 else [attributes.get("direction") == "reverse"]
        self.states = [self._state(state) for state in begin]

    def _state(self, given: Any) -> Any:
        if given is None:
            return np.zeros((self.count, self.batch, self.size))
        return _wide(np.swapaxes(given, 0, 1) if self.layout else given)

    def run(self, cells: Sequence[Step]) -> Tuple[Any, ...]:
        """All hidden states, then the last of each state: "the last output value".

        A sequence shorter than the longest ends at its own length: its last states are those there, and later
        outputs are 0. Backwards it starts at its own end.
        """
        every = np.zeros((self.steps, self.count, self.batch, self.size))
        last = [state.copy() for state in self.states]
        for at, cell in enumerate(cells):
            for row in range(self.batch):
                steps = range(int(self.lengths[row]))
                states = [state[at, row] for state in self.states]
                for step in reversed(steps) if self.backward[at] else steps:
                    states = cell(self.x[step, row], states)
                    every[step, at, row] = states[0]
                for kept, state in zip(last, states):
                    kept[at, row] = state
        if self.layout:
            every = np.transpose(every, (2, 0, 1, 3))
            last = [np.swapaxes(state, 0, 1) for state in last]
        return tuple(found.astype(self.dtype) for found in (every, *last))


def _wide(array: Any) -> Any:
    return np.asarray(array).astype(np.float64)


def rnn(_node: Any, *inputs: Any, **attributes: Any) -> Tuple[Any, ...]:
    """RNN: "Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi)"."""
    layer = _Layer(inputs, attributes, states=1, gates=1)
    functions = _activations(attributes, ["Tanh"], layer.count, attributes.get("clip"))

    def cell(at: int) -> Step:
        w, r, b = layer.w[at], layer.r[at], layer.b[at].reshape(2, -1).sum(axis=0)
        [f] = functions[at]
        return lambda x, states: [f(w @ x + r @ states[0] + b)]

    return layer.run([cell(at) for at in range(layer.count)])


def gru(
    _node: Any, *inputs: Any, linear_before_reset: Optional[int] = None, **attributes: Any
) -> Tuple[Any, ...]:
    """GRU: "Ht = (1 - zt) (.) ht + zt (.) Ht-1", and the equations for zt, rt and ht."""
    layer = _Layer(inputs, attributes, states=1, gates=3)
    functions = _activations(attributes, ["Sigmoid", "Tanh"], layer.count, attributes.get("clip"))

    def cell(at: int) -> Step:
        wz, wr, wh = np.split(layer.w[at], 3)
        rz, rr, rh = np.split(layer.r[at], 3)
        wbz, wbr, wbh, rbz, rbr, rbh = np.split(layer.b[at], 6)
        f, g = functions[at]

        def step(x: Any, states: List[Any]) -> List[Any]:
            [h] = states
            zt = f(wz @ x + rz @ h + wbz + rbz)
            rt = f(wr @ x + rr @ h + wbr + rbr)
            if linear_before_reset:
                ht = g(wh @ x + rt * (rh @ h + rbh) + wbh)
            else:
                ht = g(wh @ x + rh @ (rt * h) + rbh + wbh)
            return [(1 - zt) * ht + zt * h]

        return step

    return layer.run([cell(at) for at in range(layer.count)])


def lstm(
    _node: Any,
    *inputs: Any,
    clip: Optional[float] = None,
    input_forget: Optional[int] = None,
    **attributes: Any,
) -> Tuple[Any, ...]:
    """LSTM: "Ct = ft (.) Ct-1 + it (.) ct", "Ht = ot (.) h(Ct)", and the equations for it, ft, ct and ot.

    clip "is applied to the input of activations": of the gates only; onnxruntime and openvino do not clip the
    input of h.
    """
    layer = _Layer(inputs, attributes, states=2, gates=4)
    peepholes = inputs[7] if len(inputs) > 7 else None
    peeps = np.zeros((layer.count, 3 * layer.size)) if peepholes is None else _wide(peepholes)
    functions = _activations(attributes, ["Sigmoid", "Tanh", "Tanh"], layer.count, None)
    bound = clip or np.inf

    def cell(at: int) -> Step:
        w, r, b = layer.w[at], layer.r[at], layer.b[at].reshape(2, -1).sum(axis=0)
        pi, po, pf = np.split(peeps[at], 3)
        f, g, h = functions[at]

        def step(x: Any, states: List[Any]) -> List[Any]:
            hidden, before = states
            i, o, forget, c = np.split(w @ x + r @ hidden + b, 4)
            it = f(_bounded(i + pi * before, bound))
            ft = 1 - it if input_forget else f(_bounded(forget + pf * before, bound))
            now = ft * before + it * g(_bounded(c, bound))
            return [f(_bounded(o + po * now, bound)) * h(now), now]

        return step

    return layer.run([cell(at) for at in range(layer.count)])
