"""Records of the installed torch: what is found of known APIs, and that it survives as text."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from fuzzing.errors import UnknownNameError, UsageError
from fuzzing.generate.docter import apis, extract_constraints, overrides
from fuzzing.generate.docter.__main__ import main
from fuzzing.generate.docter.expressions import is_expression
from fuzzing.generate.docter.record import Record

pytestmark = pytest.mark.compiler_torch_eager

GOLDEN = Path(__file__).parent / "golden"
#: One or two of each sort: modules, functions of every room, methods, in place, variadic, lists of tensors.
SOME = (
    "torch.nn.Conv2d", "torch.nn.GRU", "torch.nn.Linear", "torch.nn.CrossEntropyLoss", "torch.nn.LayerNorm",
    "torch.nn.functional.conv2d", "torch.nn.functional.max_pool2d", "torch.nn.functional.dropout",
    "torch.linalg.solve", "torch.linalg.cholesky", "torch.special.zeta", "torch.fft.fft2", "torch.cat",
    "torch.gather", "torch.addmm", "torch.clamp", "torch.topk", "torch.arange", "torch.broadcast_tensors",
    "torch.Tensor.permute", "torch.Tensor.index_add_", "torch.Tensor.cumsum", "torch.Tensor.view",
    "torch.bitwise_and", "torch.nn.ConstantPad2d", "torch.bucketize",
)  # fmt: skip


@pytest.mark.parametrize("api", ["torch.nn.Conv2d", "torch.gather", "torch.addmm"])
def test_records_read_well(api: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", api]) == 0
    shown = capsys.readouterr().out
    version = extract_constraints(api).version
    assert shown.replace(version, "VERSION") == (GOLDEN / f"{api}.yaml").read_text()


@pytest.mark.parametrize("api", SOME)
def test_a_record_survives_as_text(api: str) -> None:
    record = extract_constraints(api)
    text = io.StringIO()
    YAML(typ="safe").dump(record.to_json(), text)
    assert Record.from_json(YAML(typ="safe").load(text.getvalue())) == record


def test_a_foreign_text_is_refused() -> None:
    with pytest.raises(UsageError, match="Record has the keys"):
        Record.from_json({"api": "torch.add", "colour": "red"})
    with pytest.raises(UsageError, match="must be one of 'function'"):
        Record.from_json({"api": "torch.add", "kind": "tune"})
    with pytest.raises(UnknownNameError, match=r"no 'torch\.nn\.Konv2d'"):
        extract_constraints("torch.nn.Konv2d")


@pytest.mark.parametrize("api", SOME)
def test_every_expression_can_be_read(api: str) -> None:
    record = extract_constraints(api)
    texts = [text for parameter in record.parameters for text in parameter.expressions()]
    texts += [relation.holds for relation in record.relations]
    texts += [definition.expression for definition in record.definitions]
    assert [text for text in texts if not is_expression(text)] == []


def test_all_four_categories_and_dependencies_are_found() -> None:
    found: Counter[str] = Counter()
    for record in map(extract_constraints, SOME):
        for parameter in record.parameters:
            for category in ("structure", "dtype", "ndim", "shape", "range", "enum", "length"):
                constraint = getattr(parameter, category)
                if constraint is not None and constraint.evidence.origin not in ("convention", "override"):
                    found[category] += 1
    assert set(found) == {"structure", "dtype", "ndim", "shape", "range", "enum", "length"}
    conv = extract_constraints("torch.nn.Conv2d")
    assert "in_channels % groups == 0" in [relation.holds for relation in conv.relations]
    assert ("C_in", "in_channels") in [(item.symbol, item.expression) for item in conv.definitions]


def test_references_are_followed() -> None:
    method, function = extract_constraints("torch.Tensor.cumsum"), extract_constraints("torch.cumsum")
    assert method.by_name["dim"].range == function.by_name["dim"].range
    assert method.by_name["input"].options == ("tensor",)
    alias = extract_constraints("torch.det").by_name["input"].shape
    assert alias is not None
    assert alias.patterns == (("*", "n", "n"),)


def test_no_address_of_this_process_is_told() -> None:
    layer = extract_constraints("torch.nn.TransformerEncoderLayer").by_name["activation"]
    assert layer.default == "relu"
    assert " at 0x" not in str([extract_constraints(api).to_json() for api in SOME])


def test_there_are_many_apis_each_once() -> None:
    names = list(apis.list_apis())
    assert len(names) == len(set(names))
    assert len(names) > 1000
    assert {"torch.add", "torch.nn.Conv2d", "torch.Tensor.view", "torch.linalg.svd"} <= set(names)
    assert not {"torch.set_num_threads", "torch.save", "torch.manual_seed", "torch.nn.Module"} & set(names)


def test_every_correction_is_of_something() -> None:
    names = list(apis.list_apis())
    for correction in overrides.load_corrections():
        matched = [name for pattern in correction["apis"] for name in names if re.fullmatch(pattern, name)]
        parameters = {name for api in matched for name in extract_constraints(api).by_name}
        assert matched, correction["apis"]
        assert correction["because"]
        assert set(correction.get("parameters", {})) <= parameters, correction["apis"]
