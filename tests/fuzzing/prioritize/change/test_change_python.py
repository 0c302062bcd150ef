"""Python by its syntax tree: `fuzzing.prioritize.change.python_outline`."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from fuzzing.prioritize.change import python_outline
from fuzzing.prioritize.change.symbols import Outline, UseGraph

#: A frontend with a class for each operator, as TVM's for ONNX.
CLASSES = '''\
"""Docstring."""

def _pads(attributes):
    # how many
    return attributes["pads"]

class Converter:
    @classmethod
    def get(cls, version):
        return cls._v1

class Pooling(Converter):
    @classmethod
    def _v1(cls, inputs):
        """Docstring

        of two lines."""
        return cls._run(inputs, _pads(inputs))

class MaxPool(Pooling):
    @classmethod
    def _run(cls, inputs, pads):
        return max(inputs)

class Relu(Converter):
    @classmethod
    def _v1(cls, inputs):
        return relu(inputs)

def table():
    return {
        "MaxPool": MaxPool,
        "Relu": Relu,
        "Clip": clip,
        "Abs": unary(relax.abs),
    }
'''

#: A frontend with a method for each operator, as TVM's for torch; and lowerings, as Inductor's.
METHODS = """\
class Importer(Base):
    def _unary(self, op):
        return op

    def _conv(self, node):
        return self._pad(node)

    def _conv2d(self, node):
        return self._conv(node)

    def _pad(self, node):
        return node

    def create_convert_map(self):
        return {
            "abs.default": self._unary(relax.abs),
            "conv2d.default": self._conv2d,
            "expm1.default": lambda node: node,
            nn.Conv2d: self._conv2d,
        }

@register_lowering([aten.cat, aten.concat], type_promotion_kind=None)
def cat(inputs):
    return helper(inputs, aten.slice.Tensor)

def helper(inputs):
    return inputs

exp = register_pointwise(aten.exp, override=helper)
if True:
    make_fallback(aten.sort)
decompositions["aten.silu"] = silu
"""


#: A frontend whose function defines one for each operator, as tinygrad's for ONNX.
FUNCTIONS = """\
def get_ops():
    def _pads(given):
        return given

    def MaxPool(x, pads):
        return x.max_pool(_pads(pads))

    def Relu(x):
        def unused(y):
            return y
        return x.relu()

    if True:
        pass

    def Clip_6(x, low):
        return x.clip(low)

    return {**locals(), "Clip": {6: Clip_6}}

def with_helpers(x):
    def first(y):
        return y
    def second(y):
        return y
    return first(second(x))
"""


def outline_of(text: str) -> Outline:
    outline = python_outline.outline(text)
    assert outline is not None
    return outline


def reached(text: str, line: int) -> dict[str, int]:
    found = UseGraph(outline_of(text)).reached(frozenset({line}))
    return {".".join(filter(None, (one.symbol.owner, one.symbol.name))): one.level for one in found}


def test_methods_classes_and_those_derived_are_reached() -> None:
    assert reached(CLASSES, 5) == {"_pads": 0, "Pooling": 1, "Pooling._v1": 1, "MaxPool": 2}
    assert reached(CLASSES, 22) == {"MaxPool": 0, "MaxPool._run": 0, "table": 1}
    assert reached(METHODS, 12) == {
        "Importer": 0,
        "Importer._pad": 0,
        "Importer._conv": 1,
        "Importer._conv2d": 2,
    }


def test_the_functions_of_one_that_defines_many_are_reached_but_no_helpers() -> None:
    assert reached(FUNCTIONS, 6) == {"get_ops": 0, "MaxPool": 0}
    assert reached(FUNCTIONS, 3) == {"get_ops": 0, "_pads": 0, "MaxPool": 1}
    assert reached(FUNCTIONS, 10) == {"get_ops": 0, "Relu": 0}
    assert reached(FUNCTIONS, 24) == {"with_helpers": 0}


def test_registrations_in_tables_decorators_and_calls() -> None:
    found = {one.operator: one for one in outline_of(METHODS).registrations}
    assert found.keys() == {
        "abs.default",
        "conv2d.default",
        "expm1.default",
        "nn.Conv2d",
        "aten.cat",
        "aten.concat",
        "aten.exp",
        "aten.sort",
        "aten.silu",
    }
    assert "_conv2d" in found["conv2d.default"].symbols
    assert found["aten.cat"].symbols == {"cat"}
    assert "helper" in found["aten.exp"].symbols
    assert (found["nn.Conv2d"].first, found["nn.Conv2d"].last) == (19, 19)


def test_what_a_function_speaks_of() -> None:
    [cat] = [one for one in outline_of(METHODS).symbols if one.name == "cat"]
    assert "aten.slice.Tensor" in cat.names
    assert (cat.first, cat.last) == (22, 24)


def test_comments_and_docstrings_are_no_code() -> None:
    code = outline_of(CLASSES).code
    assert not code & {1, 2, 4, 15, 16, 17}
    assert {3, 5, 18} <= code


CUT_OFF = """\
def before_the_hunk(
    return 1

@register_decomposition(aten.glu)
def glu(self):
    if self.dim():
        return self * 5
    if not self:

class After(Base):
@classmethod
"""


def test_statements_that_a_diff_cuts_off_are_left_out() -> None:
    """The lines of a diff begin and end anywhere; its heading may be the first line of a longer one."""
    outline = python_outline.outline(CUT_OFF)
    assert outline is not None
    assert {symbol.name for symbol in outline.symbols} == {"glu", "After"}
    assert [entry.operator for entry in outline.registrations] == ["aten.glu"]
    assert 2 in outline.code, "what cannot be parsed may still be what changed"


def test_the_syntax_of_a_newer_python_costs_only_its_statement() -> None:
    outline = python_outline.outline("type Pair[T] = tuple[T, T]\n\ndef f():\n    return 1\n")
    assert outline is not None
    assert [symbol.name for symbol in outline.symbols] == ["f"]


def test_what_is_no_python_has_no_outline() -> None:
    assert python_outline.outline("def f(:") is None
    assert python_outline.outline("){\n" * 100) is None
    assert python_outline.outline("a = \0") is None
    assert python_outline.outline("(" * 5_000) is None
    assert python_outline.outline("-" * 100_000 + "1") is None


@given(st.text(alphabet="def class()[]{}:,.=\n @'\"#aten\\1*", max_size=300))
def test_any_text_has_an_outline_or_none(text: str) -> None:
    outline = python_outline.outline(text)
    if outline is None:
        return
    lines = text.count("\n") + 1
    assert all(1 <= one.first <= one.last <= lines for one in outline.symbols)
    assert all(1 <= one.first <= one.last <= lines for one in outline.registrations)
    UseGraph(outline).reached(frozenset(range(lines)))


def test_dotted_names() -> None:
    assert python_outline.dotted(ast.parse("a.b.c", mode="eval").body) == "a.b.c"
    assert python_outline.dotted(ast.parse("f().b", mode="eval").body) == ""
