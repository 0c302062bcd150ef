"""C++ by its braces: `fuzzing.prioritize.change.cpp_outline`. The sources imitate the compilers'."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fuzzing.prioritize.change import cpp_outline
from fuzzing.prioritize.change.cpp_lexer import blank
from fuzzing.prioritize.change.symbols import Registration, UseGraph

#: An ONNX converter of OpenVINO: helpers in a nameless namespace, two operator sets, a registration each.
CONVERTER = """\
// Copyright {
#include "core/operator_set.hpp"
namespace ov::frontend::onnx::ai_onnx {
namespace {
static const std::map<std::string, int> modes = {{"nearest", 0},
                                                 {"cubic", 1}};

bool is_known(const std::string& mode) {
    return modes.find(mode) != modes.end();
}

Attributes attributes_of(const Node& node) {
    auto text = [&node](const std::string& key) { return key + "}"; };
    const char open = '{';
    const auto raw = R"x({ " )x";
    if (!is_known(text("mode"))) { for (;;) {} }
    return {1'000};
}
}  // namespace
namespace opset_11 {
ov::OutputVector resize(const Node& node) {
    return {std::make_shared<v11::Interpolate>(attributes_of(node))};
}
ONNX_OP("Resize", OPSET_SINCE(11), ai_onnx::opset_11::resize);
}  // namespace opset_11
}  // namespace ov::frontend::onnx::ai_onnx
"""

#: A kernel of ONNX Runtime: a wrapped registration, templates, member initializers, unbalanced branches.
KERNEL = """\
#define REGISTER_TYPED(T)                        \\
  ONNX_CPU_OPERATOR_TYPED_KERNEL(                \\
      Upsample, 9, T, KernelDefBuilder(), Upsample<T>);
REGISTER_TYPED(float)

template <typename T, typename U = std::vector<T>>
CumSum<T>::CumSum(const OpKernelInfo& info) : OpKernel(info), axes_{1}, reverse_() {
#ifdef FAST
  if (fast) {
#else
  if (slow) {
#endif
  }
}

template <>
Status CumSum<float>::Compute(OpKernelContext* context) const {
  return Run(context);
}

ONNX_CPU_OPERATOR_VERSIONED_TYPED_KERNEL(
    CumSum, 11, 13, float,
    KernelDefBuilder().TypeConstraint("T", Get<float>()),
    CumSum<float>);
"""

TABLE = """\
void run(const Attributes& a, const std::set<std::string>& left_out = {"cuda", "tensorrt"}, bool b = {}) {
    go();
}
const std::unordered_map<std::string, CreatorFunction> get_supported_ops() {
    return {
        {"aten::conv1d", op::translate_convnd},
        {"aten::conv2d", op::translate_convnd},  // {"aten::conv3d", op::translate_convnd},
        {"aten::asin", op::optional_out<op::translate_unary<opset10::Asin>, 1>},
    };
}
class OPENVINO_API ReduceMax final : public util::Reduction<int>, Other {
public:
    OPENVINO_OP("ReduceMax", "opset1");
    void validate() override { check(); }
};
TVM_REGISTER_OP("relax.nn.conv2d")
    .set_num_inputs(2)
    .set_attr<FInferStructInfo>("FInferStructInfo", InferStructInfoConv2d);
TEST_F(MathTest, CumSum_1D) {
    OpTester test("CumSum", 11);
}
"""


def test_functions_are_told_from_what_else_has_braces() -> None:
    found = {(one.owner, one.name): (one.first, one.last) for one in cpp_outline.outline(CONVERTER).symbols}
    assert found == {
        ("", "modes"): (5, 6),
        ("", "is_known"): (8, 10),
        ("", "attributes_of"): (12, 18),
        ("", "resize"): (21, 23),
    }


def test_a_helper_of_a_helper_reaches_the_converter() -> None:
    outline = cpp_outline.outline(CONVERTER)
    reached = {one.symbol.name: one.level for one in UseGraph(outline).reached(frozenset({9}))}
    assert reached == {"is_known": 0, "attributes_of": 1, "resize": 2}
    reached = {one.symbol.name: one.level for one in UseGraph(outline).reached(frozenset({5}))}
    assert reached == {"modes": 0, "is_known": 1, "attributes_of": 2}


def test_registrations_bind_operators_to_functions() -> None:
    [resize] = [one for one in cpp_outline.outline(CONVERTER).registrations if one.operator == "Resize"]
    assert "resize" in resize.symbols
    assert (resize.first, resize.last) == (24, 24)
    kernels = {one.operator: one for one in cpp_outline.outline(KERNEL).registrations}
    assert kernels.keys() == {"Upsample", "CumSum"}
    assert "CumSum" in kernels["CumSum"].symbols
    assert (kernels["CumSum"].first, kernels["CumSum"].last) == (21, 24)


def test_tables_and_chains_bind_too() -> None:
    found: dict[str, Registration] = {one.operator: one for one in cpp_outline.outline(TABLE).registrations}
    assert {"aten::conv1d", "aten::conv2d", "aten::asin", "ReduceMax", "relax.nn.conv2d"} == found.keys()
    assert found["aten::conv1d"].symbols == {"translate_convnd"}
    assert "InferStructInfoConv2d" in found["relax.nn.conv2d"].symbols


def test_methods_have_their_class_and_initializers_are_no_functions() -> None:
    kernels = [(one.owner, one.name) for one in cpp_outline.outline(KERNEL).symbols]
    assert kernels == [("CumSum", "CumSum"), ("CumSum", "Compute")]
    symbols = {one.name: one for one in cpp_outline.outline(TABLE).symbols}
    assert (symbols["run"].first, symbols["run"].last) == (1, 3)
    assert symbols["ReduceMax"].is_class
    assert "Reduction" in symbols["ReduceMax"].bases
    assert symbols["validate"].owner == "ReduceMax"


def test_a_test_is_called_by_its_case() -> None:
    symbols = {one.name: one for one in cpp_outline.outline(TABLE).symbols}
    assert symbols["MathTest_CumSum_1D"].names == {"CumSum"}


def test_comments_hold_no_code() -> None:
    code = cpp_outline.outline(
        'int a;  // b\n// c\n/* d\n e */\n\n#include <f>\nconst char* g =\n  "h";\n'
    ).code
    assert code == {1, 6, 7, 8}


@given(st.text(alphabet="{}()<>\"'/*#\\\n;:=,R aTEST_OP1", max_size=400))
def test_any_text_has_an_outline_within_its_lines(text: str) -> None:
    outline = cpp_outline.outline(text)
    lines = text.count("\n") + 1
    assert all(1 <= one.first <= one.last <= lines for one in outline.symbols)
    assert all(1 <= one.first <= one.last <= lines for one in outline.registrations)
    assert all(1 <= line <= lines for line in outline.code)
    source = blank(text)
    assert len(source.code) == len(source.defines) == len(text)
    assert source.code.count("\n") == text.count("\n")
    UseGraph(outline).reached(frozenset(range(1, lines + 1)))
