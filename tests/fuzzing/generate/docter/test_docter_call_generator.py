"""Draws obey, graze and break records as they say, and the same seed gives the same bytes."""

from __future__ import annotations

import warnings
from random import Random

import pytest

from fuzzing.cases import Provenance, Recipe, TorchCall
from fuzzing.errors import UsageError
from fuzzing.generate.docter import (
    PAPER,
    Call,
    Mode,
    NoDrawError,
    Record,
    draw,
    extract_constraints,
    find_violations,
)
from fuzzing.generate.docter.record import (
    Definition,
    Dtype,
    Enumeration,
    Evidence,
    Parameter,
    Range,
    Rank,
    Relation,
    Shape,
    Structure,
)
from fuzzing.generate.docter.value_profiles import POOL, get
from fuzzing.torch_api.samples import observe_case

pytestmark = pytest.mark.compiler_torch_eager

_MESSAGES = Evidence("override", "for a test")
_PROVENANCE = Provenance("docter", "test", "", "torch", "0")


#: Calls of these are never refused: their documentation, with few corrections, says it all.
TAKEN = (
    "torch.nn.Conv2d", "torch.nn.Conv1d", "torch.nn.Linear", "torch.nn.GRU", "torch.nn.BatchNorm2d",
    "torch.nn.LayerNorm", "torch.nn.CrossEntropyLoss", "torch.nn.MaxPool2d", "torch.nn.Embedding",
    "torch.nn.functional.layer_norm", "torch.nn.functional.interpolate", "torch.gather",
    "torch.Tensor.permute", "torch.Tensor.view", "torch.Tensor.unsqueeze", "torch.linalg.solve",
    "torch.linalg.cholesky", "torch.fft.fft2",
)  # fmt: skip


def _parameter(name: str, *options: str, **given: object) -> Parameter:
    return Parameter(name, structure=Structure(options, _MESSAGES), **given)  # type: ignore[arg-type]


#: A convolution in one dimension with a mode, a record of every category.
RECORD = Record(
    "torch.made_up",
    "function",
    "torch",
    "0",
    (
        _parameter(
            "input",
            "tensor",
            dtype=Dtype(("float32", "float64"), _MESSAGES),
            shape=Shape((("N", "C", "L"), ("C", "L")), _MESSAGES),
        ),
        _parameter(
            "weight",
            "tensor",
            dtype=Dtype(("&input",), _MESSAGES),
            shape=Shape((("out", "C / groups", "kernel"),), _MESSAGES),
        ),
        _parameter(
            "index",
            "tensor",
            dtype=Dtype(("int64",), _MESSAGES),
            ndim=Rank("1", "2", _MESSAGES),
            range=Range("0", "C", _MESSAGES, open_high=True),
        ),
        _parameter("dim", "int", default="0", range=Range("-ndim(input)", "ndim(input) - 1", _MESSAGES)),
        _parameter("groups", "int", default="1", range=Range("1", "4", _MESSAGES)),
        _parameter("mode", "str", default="'mean'", enum=Enumeration(("mean", "sum"), _MESSAGES)),
    ),
    (Relation("kernel <= L", "weight", _MESSAGES),),
    (Definition("out", "groups", _MESSAGES),),
)


def _call(**changes: object) -> Call:
    arguments: dict[str, object] = {
        "input": Recipe("uniform", "float32", (2, 4, 5), -1, 1, 0),
        "weight": Recipe("uniform", "float32", (2, 2, 3), -1, 1, 0),
        "index": Recipe("integers", "int64", (3,), 0, 3, 0),
        "groups": 2,
    }
    return Call(RECORD, arguments | changes)


def _faults(call: Call) -> list[tuple[str, str]]:
    return [(item.parameter, item.category) for item in find_violations(call)]


@pytest.mark.parametrize(
    "api", ["torch.addcmul", "torch.Tensor.addcmul_", "torch.addcdiv", "torch.addmm", "torch.baddbmm"]
)
def test_numbers_are_integers_where_the_documentation_says_so(api: str) -> None:
    """value: "For inputs of type FloatTensor or DoubleTensor must be a real number, otherwise an integer"."""
    record, kinds = extract_constraints(api), set()
    for seed in range(40):
        call = draw(record, Random(seed))
        tensors = [value for value in call.arguments.values() if isinstance(value, Recipe)]
        integers = all(tensor.dtype.startswith(("int", "uint", "bool")) for tensor in tensors)
        for name in {"value", "alpha", "beta"} & call.arguments.keys():
            number = call.arguments[name]
            assert isinstance(number, int) or not integers, call.arguments
            kinds.add(type(number))
    assert kinds == {int, float}


def test_a_call_by_hand_conforms() -> None:
    assert find_violations(_call()) == ()
    assert (
        find_violations(_call(dim=-3, mode="sum", input=Recipe("uniform", "float32", (4, 5), 0, 1, 0))) != ()
    )  # dim -3 of 2
    assert (
        find_violations(_call(dim=-2, mode="sum", input=Recipe("uniform", "float32", (4, 5), 0, 1, 0))) == ()
    )


@pytest.mark.parametrize(
    ("name", "value", "category"),
    [
        ("input", Recipe("uniform", "float32", (2, 3, 4, 5), 0, 1, 0), "shape"),
        ("weight", Recipe("uniform", "float64", (2, 2, 3), 0, 1, 0), "dtype"),
        ("weight", Recipe("uniform", "float32", (2, 3, 3), 0, 1, 0), "shape"),
        ("weight", Recipe("uniform", "float32", (3, 2, 3), 0, 1, 0), "shape"),
        ("weight", Recipe("uniform", "float32", (2, 2, 6), 0, 1, 0), "value"),  # kernel <= L
        ("index", Recipe("integers", "int64", (3,), 4, 9, 0), "value"),
        ("index", Recipe("integers", "int64", (1, 1, 1), 0, 0, 0), "shape"),
        ("index", Recipe("integers", "int32", (3,), 0, 3, 0), "dtype"),
        ("dim", 3, "value"),
        ("dim", 1.5, "structure"),
        ("dim", True, "structure"),
        ("mode", "mode", "value"),
        ("mode", 3, "structure"),
    ],
)
def test_the_checker_blames_one_parameter(name: str, value: object, category: str) -> None:
    assert _faults(_call(**{name: value})) == [(name, category)]


def test_a_missing_parameter_is_a_fault() -> None:
    call = _call()
    arguments = {name: value for name, value in call.arguments.items() if name != "index"}
    assert _faults(Call(RECORD, arguments)) == [("index", "structure")]


def test_a_thousand_conforming_calls_of_every_category() -> None:
    seen = set()
    for seed in range(1000):
        call = draw(RECORD, Random(seed))
        assert find_violations(call) == ()
        seen |= {
            (name, str(value)) for name, value in call.arguments.items() if not isinstance(value, Recipe)
        }
        given = call.arguments["input"]
        assert isinstance(given, Recipe)
        seen.add(("rank", str(len(given.shape))))
    assert {
        ("groups", "2"),
        ("groups", "3"),
        ("mode", "sum"),
        ("dim", "-1"),
        ("rank", "2"),
        ("rank", "3"),
    } <= seen


def test_a_thousand_violating_calls_each_break_one_parameter() -> None:
    broken = set()
    for seed in range(1000):
        call = draw(RECORD, Random(seed), Mode.VIOLATING)
        violations = find_violations(call)
        assert len({item.parameter for item in violations}) == 1
        broken |= {(item.parameter, item.category) for item in violations}
    assert {name for name, _ in broken} == set(RECORD.by_name)
    assert {category for _, category in broken} == {"structure", "dtype", "shape", "value"}


@pytest.mark.parametrize("mode", list(Mode))
def test_the_same_seed_gives_the_same_bytes(mode: Mode) -> None:
    for api in ("torch.nn.Conv2d", "torch.linalg.cholesky"):
        record = extract_constraints(api)
        first, again = (draw(record, Random(7), mode) for _ in range(2))
        assert first == again
        assert first.arguments != draw(record, Random(8), mode).arguments
    first, again = (draw(extract_constraints("torch.linalg.cholesky"), Random(1)) for _ in range(2))
    assert first.case(_PROVENANCE).id == again.case(_PROVENANCE).id


def test_optional_parameters_are_given_three_times_in_five() -> None:
    given = sum("mode" in draw(RECORD, Random(seed)).arguments for seed in range(400))
    assert 0.5 < given / 400 < 0.7
    assert set(draw(RECORD, Random(0), Mode.MINIMAL).arguments) == {"input", "weight", "index"}


def test_a_boundary_call_differs_in_one_parameter_at_most() -> None:
    changed = 0
    for seed in range(200):
        rng = Random(seed)
        conforming, mutated = draw(RECORD, Random(seed)), draw(RECORD, rng, Mode.BOUNDARY)
        different = [
            name for name in mutated.arguments if mutated.arguments[name] != conforming.arguments[name]
        ]
        assert len(different) <= 1
        changed += bool(different)
    assert changed > 100
    mixed = [draw(RECORD, Random(seed), Mode.MIXED) for seed in range(400)]
    assert (
        0.05 < sum(bool(find_violations(call)) for call in mixed) / 400 < 0.25
    )  # not every boundary breaks a constraint


def test_the_papers_profile_has_its_pool_and_lengths() -> None:
    record = Record("torch.sin", "function", "torch", "0", (_parameter("input", "tensor"),))
    calls = [draw(record, Random(seed), profile=PAPER).arguments["input"] for seed in range(300)]
    assert {item.dtype for item in calls} == set(POOL)
    assert {len(item.shape) for item in calls} == set(range(6))
    lengths = {length for item in calls for length in item.shape}
    assert (min(lengths), max(lengths)) == (0, 20)
    assert max(item.high for item in calls if item.dtype == "float32") > 1e38
    with pytest.raises(UsageError, match="there are: tame, paper"):
        get("wild")


def test_a_contradictory_record_is_told() -> None:
    impossible = _parameter("dim", "int", range=Range("3", "2", _MESSAGES))
    record = Record("torch.made_up", "function", "torch", "0", (impossible,))
    with pytest.raises(NoDrawError, match=r"no call of torch\.made_up obeys its record"):
        draw(record, Random(0))


@pytest.mark.parametrize("api", TAKEN)
def test_the_library_takes_conforming_calls(api: str) -> None:
    """Another judge than our own checker: torch itself."""
    record = extract_constraints(api)
    for seed in range(8):
        case = draw(record, Random(seed)).case(_PROVENANCE)
        assert isinstance(case.program, TorchCall)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert observe_case(case).outputs
