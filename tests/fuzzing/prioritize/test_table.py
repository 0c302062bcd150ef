from __future__ import annotations

from hypothesis import given, settings

from fuzzing.prioritize.abstraction import abstract_as_released_code, partition_of_released_code
from fuzzing.prioritize.greedy import rarity_weights, search
from fuzzing.prioritize.instances import Instance
from fuzzing.prioritize.opera import find_defaults
from fuzzing.prioritize.table import Table, tabulate, tabulate_instances
from tests.fuzzing.prioritize.prioritize_kit import generate_instances, instance


def _picked(table: Table) -> list[tuple[int, int]]:
    return [(table.first[pick.row], pick.score) for pick in search(table, rarity_weights)]


@given(instances=generate_instances(fewest=1), tests=generate_instances(most=4))
@settings(max_examples=60, deadline=None)
def test_instances_are_coded_as_their_abstract_parameters(
    instances: list[Instance], tests: list[Instance]
) -> None:
    rows = [abstract_as_released_code(one) for one in instances]
    seeds = [abstract_as_released_code(one) for one in tests]
    expected = tabulate(rows, seeds, find_defaults(instances, rows))
    found = tabulate_instances(instances, tests, partition_of_released_code, defaults=True)
    assert (found.names, _picked(found)) == (expected.names, _picked(expected))
    assert found.per_column(found.seeds).tolist() == expected.per_column(expected.seeds).tolist()


def test_equal_numbers_of_other_types_are_other_values() -> None:
    values = [1, 1.0, True, [1], [1.0], {"tuple": [1]}]
    instances = [instance(at, "Pad", "onnx", a=value) for at, value in enumerate(values)]
    table = tabulate_instances(instances, [], partition_of_released_code, defaults=False)
    assert table.first == (0, 1, 3, 4)  # True is 1 and a tuple a list, as in the released code
