"""What changes of real compilers touch: `fuzzing.prioritize.change.touched`.

The Python files are the installed TVM's and torch's own, edited here; the C++ ones are ours, in their style.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import onnx
import pytest

from fuzzing.prioritize.change import Change, FileChange, Hunk, TouchedOperators, find_touched_operators
from fuzzing.prioritize.change.areas import area_of

ONNX = sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""})
TORCH = [
    "torch.Tensor.add",
    "torch.abs",
    "torch.add",
    "torch.cat",
    "torch.clamp",
    "torch.conv2d",
    "torch.exp",
    "torch.nn.BatchNorm2d",
    "torch.nn.Conv1d",
    "torch.nn.Conv2d",
    "torch.nn.ConvTranspose2d",
    "torch.nn.functional.celu",
    "torch.nn.functional.conv3d",
    "torch.nn.functional.linear",
    "torch.sort",
]


def installed(package: str, file: str) -> str:
    """The text of a file of an installed package, which is not imported."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    return (Path(spec.submodule_search_locations[0]) / file).read_text(encoding="utf-8")


def edited(path: str, old: str, *edits: tuple[str, str]) -> FileChange:
    new = old
    for before, after in edits:
        assert new.count(before) == 1, (before, new.count(before))
        new = new.replace(before, after)
    return FileChange(path, path, old, new)


def said(*files: FileChange, operators: list[str]) -> TouchedOperators:
    return find_touched_operators(Change(files), operators)


class TestTvm:
    ONNX_PATH = "python/tvm/relax/frontend/onnx/onnx_frontend.py"
    TORCH_PATH = "python/tvm/relax/frontend/torch/"

    @staticmethod
    def onnx_frontend() -> str:
        return installed("tvm", "relax/frontend/onnx/onnx_frontend.py")

    def test_a_converter_class(self) -> None:
        edit = ("class Hardmax(OnnxOpConverter):", "class Hardmax(OnnxOpConverter):\n    checked = True")
        found = said(edited(self.ONNX_PATH, self.onnx_frontend(), edit), operators=ONNX)
        assert dict(found.operators).pop("Hardmax") == 1.0
        assert found.reasons["Hardmax"][0].startswith(f"{self.ONNX_PATH}, line")
        assert found.reasons["Hardmax"][0].endswith("Hardmax's converter Hardmax was changed")
        assert all(weight < 0.4 for operator, weight in found.operators.items() if operator != "Hardmax")

    def test_a_helper_of_three_converters(self) -> None:
        edit = (
            "def _normalize_legacy_softmax_axis(axis: int",
            "def _normalize_legacy_softmax_axis(axis: bool",
        )
        found = said(edited(self.ONNX_PATH, self.onnx_frontend(), edit), operators=ONNX)
        assert found.operators.keys() == {"Softmax", "LogSoftmax", "Hardmax"}
        assert list(found.operators.values()) == pytest.approx([0.9**2 / 3**0.5] * 3)
        assert "which Softmax's converter Softmax._impl_v1 uses" in found.reasons["Softmax"][0]

    def test_the_class_that_converters_derive_from(self) -> None:
        edit = (
            "class BinaryBase(OnnxOpConverter):",
            "class BinaryBase(OnnxOpConverter):\n    checked = True",
        )
        found = said(edited(self.ONNX_PATH, self.onnx_frontend(), edit), operators=ONNX)
        assert {"Add", "Sub", "Mul", "Div", "Pow", "Mod", "Less", "BitwiseAnd"} <= found.operators.keys()
        assert not {"Conv", "Resize", "Softmax"} & found.operators.keys()

    def test_an_entry_of_the_table(self) -> None:
        file = "exported_program_translator.py"
        old = installed("tvm", f"relax/frontend/torch/{file}")
        edit = ('"celu.default": self._celu', '"celu.default": self._elu')
        found = said(edited(self.TORCH_PATH + file, old, edit), operators=TORCH)
        assert found.operators == {"torch.nn.functional.celu": 1.0}
        assert "registration of celu.default" in found.reasons["torch.nn.functional.celu"][0]

    def test_a_method_that_another_file_registers(self) -> None:
        file = "base_fx_graph_translator.py"
        old = installed("tvm", f"relax/frontend/torch/{file}")
        edit = ("def _conv2d_impl(\n        self,", "def _conv2d_impl(\n        self, checked,")
        found = said(edited(self.TORCH_PATH + file, old, edit), operators=TORCH)
        best = max(found.operators.values())
        assert {name for name, weight in found.operators.items() if weight == best} == {
            "torch.conv2d",
            "torch.nn.Conv2d",
        }
        assert "torch.cat" not in found.operators

    def test_a_helper_that_no_operator_can_be_told_from_is_the_frontends(self) -> None:
        file = "base_fx_graph_translator.py"
        old = installed("tvm", f"relax/frontend/torch/{file}")
        found = said(
            edited(self.TORCH_PATH + file, old, ("def _unary_op(self", "def _unary_op(self, x")),
            operators=TORCH,
        )
        assert found.operators == {}
        assert found.frontends == {"torch": 0.1}
        assert found.weight("torch.abs", "torch") == 0.1
        assert found.weight("Abs", "onnx") == 0.0
        assert found.why("torch.abs", "torch") == (
            f"{self.TORCH_PATH}{file} was changed; it names no operator",
        )

    def test_an_operator_of_relax_in_cpp_is_of_every_frontend(self) -> None:
        old = (
            'TVM_REGISTER_OP("relax.nn.conv2d")\n    .set_num_inputs(2)\n'
            '    .set_attr<FInferStructInfo>("FInferStructInfo", InferStructInfoConv2d);\n'
            "StructInfo InferStructInfoConv2d(const Call& call) {\n  return Check(call);\n}\n"
        )
        found = said(
            edited("src/relax/op/nn/convolution.cc", old, ("Check(call)", "Check(call, ctx)")),
            operators=ONNX + TORCH,
        )
        assert found.operators["torch.nn.Conv2d"] == 0.8
        assert found.operators["Conv"] == pytest.approx(0.8 * 0.3)


class TestInductor:
    def test_a_lowering(self) -> None:
        old = installed("torch", "_inductor/lowering.py")
        edit = ("def cat(inputs, dim=0):", "def cat(inputs, dim=1):")
        found = said(edited("torch/_inductor/lowering.py", old, edit), operators=TORCH)
        assert found.operators == {"torch.cat": 1.0}

    def test_a_helper_of_nearly_all_says_little_of_each(self) -> None:
        old = installed("torch", "_inductor/lowering.py")
        edit = ("def make_pointwise(", "def make_pointwise(checked,")
        found = said(edited("torch/_inductor/lowering.py", old, edit), operators=TORCH)
        assert {"torch.abs", "torch.exp", "torch.add"} <= found.operators.keys()
        assert max(found.operators.values()) < 0.3


#: An ONNX converter of OpenVINO.
RESIZE = """\
namespace ov::frontend::onnx::ai_onnx {
namespace {
Attributes attributes_of(const Node& node) {
    return {node.get("mode")};
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
#: Before 2024.3 the registrations were in another file.
UNREGISTERED = RESIZE.replace('ONNX_OP("Resize", OPSET_SINCE(11), ai_onnx::opset_11::resize);\n', "")
CONVND = """\
namespace ov::frontend::pytorch::op {
OutputVector translate_convnd(const NodeContext& context) {
    auto strides = context.const_input<Strides>(3);
    return {context.mark_node(std::make_shared<v1::Convolution>(strides))};
}
}
"""
PASS = """\
ov::pass::ConvertReduceToPooling::ConvertReduceToPooling() {
    MATCHER_SCOPE(ConvertReduceToPooling);
    auto reduce = pattern::wrap_type<ov::op::v1::ReduceMean>({any_input(), any_input()});
    register_matcher(reduce);
}
"""


class TestOpenvino:
    OP = "src/frontends/onnx/frontend/src/op/"

    @pytest.mark.parametrize("text", [RESIZE, UNREGISTERED], ids=["registered", "unregistered"])
    def test_a_converter_for_onnx(self, text: str) -> None:
        change = edited(self.OP + "resize.cpp", text, ("<v11::Interpolate>", "<v4::Interpolate>"))
        found = said(change, operators=ONNX + TORCH)
        assert max(found.operators, key=lambda one: found.operators[one]) == "Resize"
        assert found.operators["Resize"] >= 0.8
        assert not [one for one in found.operators if one.startswith("torch")]
        assert found.reasons["Resize"][0].startswith(f"{self.OP}resize.cpp, line 9: ")

    def test_a_helper_in_the_same_file(self) -> None:
        change = edited(self.OP + "resize.cpp", RESIZE, ('"mode"', '"modes"'))
        found = said(change, operators=ONNX)
        assert found.operators["Resize"] == 0.9
        assert found.reasons["Resize"] == (
            f"{self.OP}resize.cpp, line 4: attributes_of was changed, which Resize's converter resize uses",
        )

    def test_a_converter_that_is_gone(self) -> None:
        gone = FileChange(self.OP + "resize.cpp", self.OP + "resize.cpp", RESIZE, None)
        assert said(gone, operators=ONNX).operators["Resize"] == 1.0

    def test_a_converter_for_torch_that_serves_all_dimensions(self) -> None:
        change = edited("src/frontends/pytorch/src/op/convnd.cpp", CONVND, ("<Strides>(3)", "<Strides>(4)"))
        found = said(change, operators=ONNX + TORCH)
        same = ["torch.conv2d", "torch.nn.Conv1d", "torch.nn.Conv2d", "torch.nn.functional.conv3d"]
        assert {one: weight for one, weight in found.operators.items() if weight > 0.7} == dict.fromkeys(
            same, pytest.approx(0.72)
        )
        assert "Conv" not in found.operators

    def test_a_pass_weighs_what_it_speaks_of_up_in_every_frontend(self) -> None:
        path = "src/common/transformations/src/transformations/op_conversions/convert_reduce_to_pooling.cpp"
        found = said(
            edited(path, PASS, ("any_input(), any_input()", "any_input()")), operators=[*ONNX, "torch.mean"]
        )
        assert found.passes == {"ConvertReduceToPooling": 0.5}
        assert found.operators["ReduceMean"] == max(found.operators.values())
        assert found.operators["torch.mean"] > 0

    def test_code_that_every_operator_goes_through(self) -> None:
        text = "void Graph::decode() {\n  load();\n}\n"
        path = "src/frontends/onnx/frontend/src/core/graph.cpp"
        found = said(edited(path, text, ("load()", "loads()")), operators=ONNX)
        assert found.frontends == {"onnx": 0.1}


class TestOnnxruntime:
    def test_a_kernel(self) -> None:
        text = (
            "template <typename T>\nStatus CumSum<T>::Compute(Context* context) const {\n  return Run();\n}\n"
            "ONNX_CPU_OPERATOR_TYPED_KERNEL(CumSum, 14, float, KernelDefBuilder(), CumSum<float>);\n"
        )
        path = "onnxruntime/core/providers/cpu/math/cumsum.cc"
        found = said(edited(path, text, ("Run()", "Runs()")), operators=ONNX + TORCH)
        assert found.operators == {"CumSum": 0.8}

    def test_a_test(self) -> None:
        text = 'TEST(MathOpTest, Cum_1D) {\n  OpTester test("CumSum", 11);\n  test.Run();\n}\n'
        path = "onnxruntime/test/providers/cpu/math/cumsum_test.cc"
        found = said(edited(path, text, ("test.Run()", "test.Run(1)")), operators=ONNX)
        assert found.operators == {"CumSum": pytest.approx(0.48)}

    def test_another_devices_kernel_says_nothing(self) -> None:
        change = FileChange("onnxruntime/core/providers/cuda/math/cumsum.cc", None, "a();", "b();")
        assert not said(change, operators=ONNX)


def test_comments_say_nothing() -> None:
    text = f"// Copyright 2024\n{RESIZE}"
    change = edited(
        "src/frontends/onnx/frontend/src/op/resize.cpp", text, ("Copyright 2024", "Copyright 2026")
    )
    assert said(change, operators=ONNX) == TouchedOperators()


def test_documentation_and_build_files_say_nothing() -> None:
    for path in (
        "docs/ops/resize.cpp",
        "src/resize/CMakeLists.txt",
        "README.md",
        ".github/workflows/conv.yml",
    ):
        assert area_of(path).role == "none"
        assert not said(FileChange(path, None, "Resize a", "Resize b"), operators=ONNX)


def test_a_file_of_an_unknown_compiler_is_read_all_the_same() -> None:
    text = "def lower_resize(node):\n    return node\n"
    found = said(edited("mycompiler/import_model.py", text, ("return node", "return 1")), operators=ONNX)
    assert found.operators["Resize"] == pytest.approx(0.3 * 0.8)


def test_without_texts_the_name_of_the_file_is_all_there_is() -> None:
    change = FileChange(
        "src/frontends/onnx/frontend/src/op/resize.cpp", None, None, None, (Hunk(1, 3, 1, 3),)
    )
    found = said(change, operators=ONNX)
    assert found.operators == {"Resize": 0.5, "Upsample": 0.35}


def test_a_file_may_be_called_like_a_family() -> None:
    found = said(FileChange("src/frontends/onnx/frontend/src/op/reduce.cpp"), operators=ONNX)
    assert {"ReduceMax", "ReduceL1", "ReduceLogSumExp"} <= found.operators.keys()
    assert set(found.operators.values()) == {0.35}


def test_what_names_an_operator_outweighs_what_names_none() -> None:
    table = FileChange("src/frontends/onnx/frontend/src/ops_bridge.cpp")
    assert said(table, operators=ONNX).frontends == {"onnx": 0.1}
    found = said(table, FileChange("src/frontends/onnx/frontend/src/op/mish.cpp"), operators=ONNX)
    assert found.operators == {"Mish": 0.5}
    assert found.frontends == {}


def test_broken_syntax_falls_back_to_names_and_crashes_nothing() -> None:
    change = FileChange(
        "python/tvm/relax/frontend/onnx/onnx_frontend.py", None, "x = 1", "def Resize(:\n  (("
    )
    found = said(change, operators=ONNX)
    assert found.operators["Resize"] == pytest.approx(0.2)


def test_the_order_of_operators_and_files_does_not_matter() -> None:
    files = [
        edited("src/frontends/onnx/frontend/src/op/resize.cpp", RESIZE, ('"mode"', '"modes"')),
        edited("src/frontends/pytorch/src/op/convnd.cpp", CONVND, ("<Strides>(3)", "<Strides>(4)")),
    ]
    one = find_touched_operators(Change(tuple(files)), ONNX + TORCH)
    other = find_touched_operators(Change(tuple(files[::-1])), (ONNX + TORCH)[::-1])
    assert one == other
    assert list(one.operators) == sorted(one.operators)


class TestPlaces:
    """Where, in the commit at head, a change touches an operator."""

    PATH = "src/frontends/onnx/frontend/src/op/resize.cpp"
    OLD = """\
namespace ov {
ov::OutputVector resize(const Node& node) {
    const auto mode = node.get_attribute_value<std::string>("mode");
    return {mode};
}
ONNX_OP("Resize", OPSET_SINCE(1), ai_onnx::opset_1::resize);
}
"""

    def test_of_a_converter_it_is_the_changed_line_at_head(self) -> None:
        new = self.OLD.replace("    return {mode};", "    // why\n    return {mode, mode};")
        found = find_touched_operators(Change((FileChange(self.PATH, self.PATH, self.OLD, new),)), ONNX)
        place = found.places["Resize"][0]
        assert (place.path, place.line, place.role) == (self.PATH, 5, "converter")
        assert new.split("\n")[place.line - 1] == "    return {mode, mode};"

    def test_what_was_only_taken_away_has_no_place(self) -> None:
        new = self.OLD.replace('    const auto mode = node.get_attribute_value<std::string>("mode");\n', "")
        found = find_touched_operators(Change((FileChange(self.PATH, self.PATH, self.OLD, new),)), ONNX)
        assert found.operators["Resize"] > 0
        assert found.places.get("Resize", ()) == ()

    def test_a_pass_has_one_of_its_own(self) -> None:
        path = "src/common/transformations/src/transformations/common_optimizations/fold_softmax.cpp"
        old = "bool FoldSoftmax::run(const M& m) {\n    auto p = make<v1::Softmax>();\n    return true;\n}\n"
        new = old.replace("true", "p.matches(m)")
        found = find_touched_operators(Change((FileChange(path, path, old, new),)), ONNX)
        place = found.pass_places["FoldSoftmax"]
        assert (place.path, place.line, place.role) == (path, 3, "pass")
