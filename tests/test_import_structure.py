"""Import circles and levels, over every import: those in functions and under TYPE_CHECKING count, too."""

from __future__ import annotations

from itertools import product

import grimp
import networkx as nx
import pytest

#: Packages on a plane's longest chain of imports; single modules, such as `errors`, are no level.
MAX_LEVELS = {"bot": 9, "fuzzing": 9}


@pytest.fixture(scope="module")
def modules() -> nx.DiGraph[str]:
    graph = grimp.build_graph("bot", "fuzzing", cache_dir=None)
    return nx.DiGraph(
        edge
        for name in graph.modules
        for edge in product([name], graph.find_modules_directly_imported_by(name))
    )


def circles(graph: nx.DiGraph[str]) -> list[set[str]]:
    return [members for members in nx.strongly_connected_components(graph) if len(members) > 1]


def packages(modules: nx.DiGraph[str], plane: str) -> nx.DiGraph[str]:
    """Imports between a plane's packages and modules of the first level."""
    inside = ((one.split("."), other.split(".")) for one, other in modules.edges)
    named = (
        (".".join(one[:2]), ".".join(other[:2]))
        for one, other in inside
        if one[0] == other[0] == plane and min(len(one), len(other)) > 1
    )
    return nx.DiGraph((one, other) for one, other in named if one != other)


def test_no_module_imports_itself_over_others(modules: nx.DiGraph[str]) -> None:
    assert len(modules) > 600
    assert circles(modules) == []


@pytest.mark.parametrize("plane", MAX_LEVELS)
def test_packages_have_few_levels_and_no_circles(modules: nx.DiGraph[str], plane: str) -> None:
    imports = packages(modules, plane)
    assert circles(imports) == []
    folders = [name for name in imports if any(one.startswith(f"{name}.") for one in modules)]
    longest = nx.dag_longest_path(nx.transitive_closure_dag(imports).subgraph(folders))
    assert 5 < len(longest) <= MAX_LEVELS[plane], " → ".join(longest)
