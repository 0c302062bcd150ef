"""What docstrings say, as torch writes it: sections, mathematics, shapes, ranges, types."""

from __future__ import annotations

import pytest

from fuzzing.generate.docter import docstrings, latex, phrase_patterns, shape_patterns, type_names
from fuzzing.generate.docter.native_signatures import read_signature
from fuzzing.generate.docter.record import Evidence

_MESSAGES = Evidence("docstring", "")

_DOCSTRING = """
narrow(input, dim, start, *, out=None) -> Tensor

Narrows :attr:`input`.

Args:
    input (Tensor): the tensor
        to narrow
    dim, dim2 (int or tuple of ints, optional): which. Default: 0

Keyword args:
    out (Tensor, optional): where to

Shape:
    - Input: :math:`(N, C_{in})` or
      :math:`(C_{in})`
    - Output: :math:`(N)` where :math:`C_{in} = \\text{in\\_features}`

Example::

    >>> narrow(x: y)
"""


def test_a_docstring_is_taken_apart() -> None:
    found = docstrings.parse_docstring(_DOCSTRING, "narrow")
    assert found.signatures == ("input, dim, start, *, out=None",)
    assert [(entry.name, entry.type) for entry in found.entries] == [
        ("input", "Tensor"),
        ("dim", "int or tuple of ints, optional"),
        ("dim2", "int or tuple of ints, optional"),
        ("out", "Tensor, optional"),
    ]
    entry = found.entry("input")
    assert entry is not None
    assert entry.text == "the tensor to narrow"
    assert [shape.name for shape in found.shapes] == ["Input", "Output"]
    assert "Narrows :attr:`input`." in found.prose
    assert shape_patterns.parse_definitions(found.shape_text) == [("C_in", "in_features")]


def test_a_signature_has_kinds_and_defaults() -> None:
    found = read_signature("input: Tensor, *dims, p=2., keepdim=False) -> (Tensor, Tensor")
    assert [(item.name, item.kind, item.default) for item in found] == [
        ("input", "positional", None),
        ("dims", "variadic", None),
        ("p", "keyword", "2.0"),
        ("keepdim", "keyword", "False"),
    ]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"\frac{\text{in\_channels}}{\text{groups}}", "((in_channels)/(groups))"),
        (r"(N, C_{\text{out}}, H_{out})", "(N, C_out, H_out)"),
        (
            r"\left\lfloor\frac{L_{in} - 1}{\text{stride}[0]} + 1\right\rfloor",
            "floor(((L_in - 1)/(stride[0])) + 1)",
        ),
        (r"N \times 2 \leq 3", "N * 2 <= 3"),
    ],
)
def test_mathematics_is_made_plain(text: str, plain: str) -> None:
    assert latex.to_plain_text(text) == plain


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("(N, C, L_in) or (C, L_in).", (("N", "C", "L_in"), ("C", "L_in"))),
        ("(*, H_in) where * means any number (of dimensions, say)", (("*", "H_in"),)),
        ("Shape (C), (N, C) or (N, C, d_1, d_2, ..., d_K)", (("C",), ("N", "C"), ("N", "C", "*series"))),
        (
            "filters of shape (out_channels , ((in_channels)/(groups)) , kW)",
            (("out_channels", "in_channels/groups", "kW"),),
        ),
        ("tensor of size ( N * 2 * 3 )", (("N", "2", "3"),)),
        ("tensor of shape (*_1, D, *_2)", (("*1", "D", "*2"),)),
        ("tensor of shape ()", ((),)),
        ("a number (integer) or a tuple (kH, kW)", ()),
    ],
)
def test_shapes(text: str, patterns: tuple[tuple[str, ...], ...]) -> None:
    found = shape_patterns.parse_patterns(
        text, anywhere=not text.startswith(("a number", "filters", "tensor"))
    )
    assert found == patterns


def test_shapes_of_running_text() -> None:
    text = (
        "If mat is a (n * m) tensor, vec is a 1-D tensor of size m, then input must be broadcastable with a "
        "(n * p) tensor and out will be a (n) tensor."
    )
    assert shape_patterns.parse_sentences(text, frozenset({"input", "mat", "vec"})) == {
        "mat": ("n", "m"),
        "vec": ("m",),
        "input": ("broadcast(n, p)",),
    }


def test_lengths_of_outputs() -> None:
    text = """
    .. math::
        L_{out} = \\left\\lfloor\\frac{L_{in} - \\text{k}}{\\text{stride}}
                  + 1\\right\\rfloor
    """
    assert shape_patterns.parse_formulas(text) == [("L_out", "floor(((L_in - k)/(stride)) + 1)")]


@pytest.mark.parametrize(
    ("text", "low", "high", "opened"),
    [
        ("A float in [0.0, 1.0].", "0.0", "1.0", (False, False)),
        ("values between 0 and 1", "0", "1", (False, False)),
        ("must be greater than 0", "0", None, (True, False)),
        ("should be at least 2", "2", None, (False, False)),
        ("0 <= p < 1", "0", "1", (False, True)),
        ("Must be non-negative.", "0", None, (False, False)),
        ("probability of an element to be zeroed", "0", "1", (False, False)),
        (
            "Value within range [-input.dim() - 1, input.dim() + 1)",
            "-ndim(input) - 1",
            "ndim(input) + 1",
            (False, True),
        ),
    ],
)
def test_ranges(text: str, low: str | None, high: str | None, opened: tuple[bool, bool]) -> None:
    found = phrase_patterns.parse_interval(text, _MESSAGES, frozenset({"input"}))
    assert found is not None
    assert (found.low, found.high, (found.open_low, found.open_high)) == (low, high, opened)


@pytest.mark.parametrize("text", ["the input tensor", "positive or negative numbers", "a tuple (kH, kW)"])
def test_no_range_is_read_into_other_sentences(text: str) -> None:
    assert phrase_patterns.parse_interval(text, _MESSAGES) is None


def test_enumerations_hold_the_default() -> None:
    found = phrase_patterns.parse_enumeration(
        "``'none'`` | ``'mean'`` | ``'sum'``. Default: ``'mean'``", "'mean'", _MESSAGES
    )
    assert found is not None
    assert found.values == ("none", "mean", "sum")
    modes = phrase_patterns.parse_enumeration("either ``'floor'`` or 'trunc'", "None", _MESSAGES)
    assert modes is not None
    assert modes.values == ("floor", "trunc", None)
    assert phrase_patterns.parse_enumeration("see 'pad'", None, _MESSAGES) is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "The input tensor must be of integral or Boolean types.",
            ("int64", "int32", "int16", "int8", "uint8", "bool"),
        ),
        ("Supports input of float, double, cfloat and cdouble dtypes.", ("float32", "float64", "complex64")),
        ("Must be half, float or double.", ("float32", "float64")),
        ("The dimension must be of length 3.", ()),
        ("the input tensor", ()),
    ],
)
def test_element_types(text: str, names: tuple[str, ...]) -> None:
    assert phrase_patterns.parse_dtypes(text) == names


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("int or tuple of ints, optional", ("int", "list(int)")),
        ("Tensor or Number", ("tensor", "int", "float")),
        ("LongTensor", ("tensor",)),
        ("sequence of Tensors", ("list(tensor)",)),
        ("tuple[Tensor, ...] | list[Tensor] | None", ("list(tensor)", "none")),
        ("Optional[int]", ("none", "int")),
        (":class:`torch.dtype`, optional", ("dtype",)),
        ("torch.Generator", ("generator",)),
        ("_size", ("list(int)",)),
        ("the usual", ()),
    ],
)
def test_structures(text: str, options: tuple[str, ...]) -> None:
    assert type_names.parse_structures(text) == options
