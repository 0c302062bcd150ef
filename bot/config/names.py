"""Names of registered items that a configuration may use, and suggestions for misspelled ones."""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import fuzzing
from fuzzing import backends as adapters
from fuzzing.cases.programs import get_kind
from fuzzing.oracles.tolerance_profiles import profile_names

#: Default sources of a frontend: its library's own tests, if known here. Others must be named.
DEFAULT_SOURCES: Mapping[str, tuple[str, ...]] = {
    "onnx": (
        "onnx-node-tests",
        "onnx-simple-tests",
        "onnx-pytorch-tests",
        "onnx-constant-inputs",
        "onnx-earlier-opsets",
        "onnx-contexts",
        "onnx-forms",
    ),
    "torch": ("torch-opinfo", "torch-moduleinfo", "torch-docs"),
    "keras": ("keras-tests",),
}
#: Number of parts of a source. Each part imports the library again (torch: 2 s); a timeout loses one part
#: (ten seconds for torch's operator database).
PARTS = 16

#: CPython 3.11 shares the AST depth counter between threads: concurrent parsing raises SystemError ("AST
#: constructor recursion depth").
_PARSING = threading.Lock()

#: A name and an address, as git writes who signs a commit off.
_SIGNER = re.compile(r"(?P<name>[^<>\n]+) <(?P<email>[^<>@\s]+@[^<>@\s]+)>")

_REGISTER_SOURCE = "register_source"  # the decorator in fuzzing.migrate.sources
_REGISTER_RECORDER = "register_recorder"  # that in fuzzing.migrate.recorders
_REGISTER_STRATEGY = "register_strategy"  # that in fuzzing.prioritize
_REGISTER_REWARD = "register_reward"  # that in fuzzing.generate.graph_search.rewards
_PROVISIONER = "provisioner"  # and that in bot.toolchains


def backends() -> tuple[str, ...]:
    """The testable compilers, without the references, whose packages are pinned for other reasons."""
    return adapters.compilers()


def frontends(backend: str) -> tuple[str, ...]:
    """The frontends of a backend, that of its first program kind first."""
    return tuple(dict.fromkeys(get_kind(kind).frontend for kind in adapters.get(backend).kinds))


def all_frontends() -> tuple[str, ...]:
    """The frontends of all backends, sorted."""
    return tuple(sorted({frontend for name in backends() for frontend in frontends(name)}))


def sources() -> tuple[str, ...]:
    """Every case source of `fuzzing.migrate`."""
    return tuple(source_libraries())


def sources_of(frontend: str) -> tuple[str, ...]:
    """The sources whose cases this frontend loads: those of the library with its name."""
    return tuple(name for name, library in source_libraries().items() if library == frontend)


def default_sources(frontend: str) -> tuple[str, ...]:
    """The default sources of a frontend; () if it has none."""
    known = sources_of(frontend)
    return tuple(name for name in DEFAULT_SOURCES.get(frontend, known) if name in known)


@cache
def source_libraries() -> Mapping[str, str]:
    """Source → library whose tests it migrates, sorted."""
    return {name: one.keywords.get("library", "") for name, one in _sources().items()}


def source_requirements(name: str) -> tuple[str, ...]:
    """The distributions that a source needs besides Assay: its library and the imports of its tests."""
    one = _sources().get(name)
    keywords = one.keywords if one is not None else {}
    return tuple(filter(None, [keywords.get("library", ""), *keywords.get("needs", "").split()]))


def missing_packages(source: str) -> tuple[str, ...]:
    """The distributions that a case source needs and that are not installed."""
    return tuple(name for name in source_requirements(source) if not _installed(name))


def _installed(distribution: str) -> bool:
    try:
        return bool(version(distribution))
    except PackageNotFoundError:
        return False


def source_parts(name: str) -> int:
    """How many parts a source is migrated in; 1 if omitting a part's tests saves no work."""
    one = _sources().get(name)
    return PARTS if one is not None and "part" in one.parameters else 1


def generation_options(source: str) -> frozenset[str]:
    """The options of a source that generates its cases: seed, count and others; none for other sources."""
    one = _sources().get(source)
    known = {"seed", "count", "blocks", "reward", "feedback", "ablation", "rules", "models"}
    return one.parameters & known if one is not None and is_generated(source) else frozenset()


#: The seed of generated sources without the option; a test compares it with theirs.
DEFAULT_SEED = 0


def is_generated(source: str) -> bool:
    """Whether a source generates its cases from a seed, in any number."""
    one = _sources().get(source)
    return one is not None and {"seed", "count"} <= one.parameters


@cache
def rewards() -> tuple[str, ...]:
    """Every reward of the source `graph-search`: operator-level coverage, then those that ask a compiler."""
    package = "generate/graph_search/rewards"
    return ("coverage", *sorted(name for name, _ in _find_registered(package, _REGISTER_REWARD)))


@cache
def strategies() -> tuple[str, ...]:
    """Every strategy that ranks cases, sorted."""
    return tuple(sorted(name for name, _ in _find_registered("prioritize", _REGISTER_STRATEGY)))


@dataclass(frozen=True)
class _Registered:
    """A function registered by a decorator.

    keywords    the decorator's keywords that are string or boolean literals
    parameters  the function's parameters: `part`, `seed`, `count`
    """

    keywords: Mapping[str, str]
    parameters: frozenset[str]


@cache
def _sources() -> Mapping[str, _Registered]:
    return dict(sorted(_find_registered("migrate", _REGISTER_SOURCE)))


def _find_registered(package: str, decorator: str) -> list[tuple[str, _Registered]]:
    """Items that a package of `fuzzing` registers with a decorator, by name.

    Parses the files, because the control plane must not import them.
    """
    folder = Path(next(iter(fuzzing.__path__))) / package
    trees = (_parse(path) for path in sorted(folder.rglob("*.py")))
    return [found for tree in trees for found in _find_in_file(tree, decorator)]


def _parse(path: Path) -> ast.Module:
    with _PARSING:
        return ast.parse(path.read_bytes())


def _find_in_file(tree: ast.Module, decorator: str) -> Iterator[tuple[str, _Registered]]:
    """Items that a file registers: `@decorator("…", library="…")`, or names bound to such strings."""
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def text(node: ast.expr) -> str | None:
        value = constants.get(node.id) if isinstance(node, ast.Name) else node
        return (
            str(value.value)
            if isinstance(value, ast.Constant) and isinstance(value.value, str | bool)
            else None
        )

    for node in tree.body:
        for call in getattr(node, "decorator_list", ()):
            if not (isinstance(call, ast.Call) and ast.unparse(call.func).endswith(decorator)):
                continue
            keywords = {word.arg: value for word in call.keywords if word.arg and (value := text(word.value))}
            arguments = (*node.args.args, *node.args.kwonlyargs) if isinstance(node, ast.FunctionDef) else ()
            parameters = frozenset(argument.arg for argument in arguments)
            for name in filter(None, map(text, call.args)):
                yield name, _Registered(keywords, parameters)


@cache
def provisioners() -> tuple[str, ...]:
    """Every provisioner that a repository may use, sorted.

    Parses the files of `bot.toolchains`, which imports this package.
    """
    folder = Path(__file__).parent.parent / "toolchains"
    found = (one for path in folder.glob("*.py") for one in _find_in_file(_parse(path), _PROVISIONER))
    return tuple(sorted(name for name, one in found if one.keywords.get("configurable") == "True"))


def test_writers() -> tuple[str, ...]:
    """Every writer of tests, sorted: the files of `bot.proposals.writers`, which imports this package."""
    folder = Path(__file__).parent.parent / "proposals" / "writers"
    return tuple(sorted(path.stem.replace("_", "-") for path in folder.glob("[!_]*.py")))


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the closest known word, and all known words."""
    names = list(known)
    close = get_close_matches(word, names, n=1, cutoff=0.6)
    there = f"here are: {', '.join(names) or 'none'}"
    return f"did you mean {close[0]!r}? T{there}" if close else f"t{there}"


def check_backend_name(word: str) -> str:
    """Checks the name of a backend."""
    return _check_name("backend", word, backends())


def check_signer(text: str) -> str:
    """Checks who signs commits off: `Name <address>`."""
    split_signer(text)
    return text


def split_signer(text: str) -> tuple[str, str]:
    """Name and address of `Name <address>`. Raises ValueError for other texts."""
    found = _SIGNER.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} signs nothing off; write 'Name <address>', as git's user.name and user.email"
        )
    return found["name"], found["email"]


def check_source_name(word: str) -> str:
    """Checks the name of a case source."""
    return _check_name("case source", word, sources())


@cache
def recorded_libraries() -> tuple[str, ...]:
    """The libraries whose calls can be recorded, sorted; each is a file of `fuzzing.migrate.recorders`."""
    folder = Path(next(iter(fuzzing.__path__))) / "migrate" / "recorders"
    return tuple(sorted(path.stem for path in folder.glob("*.py") if _registers_recorder(path)))


def _registers_recorder(path: Path) -> bool:
    classes = (node for node in _parse(path).body if isinstance(node, ast.ClassDef))
    named = (ast.unparse(decorator) for node in classes for decorator in node.decorator_list)
    return any(name.endswith(_REGISTER_RECORDER) for name in named)


def check_library_name(word: str) -> str:
    """Checks the name of a library whose calls are to be recorded."""
    return _check_name("library that can be recorded", word, recorded_libraries())


def check_strategy_name(word: str) -> str:
    """Checks the name of a strategy that ranks cases."""
    return _check_name("strategy", word, strategies())


def check_profile_name(word: str) -> str:
    """Checks the name of a tolerance profile."""
    return _check_name("tolerance profile", word, profile_names())


def check_frontend_name(word: str, backend: str) -> str:
    """Checks that a backend has this frontend."""
    return _check_name(f"frontend of {backend}", word, frontends(backend))


def check_device_name(word: str, backend: str) -> str:
    """Checks that a backend has this device."""
    return _check_name(f"device of {backend}", word, adapters.get(backend).devices)


def check_provisioner_name(word: str) -> str:
    """Checks the name of a provisioner."""
    return _check_name("provisioner for repositories", word, provisioners())


def check_writer_name(word: str) -> str:
    """Checks the name of a test writer."""
    return _check_name("writer of tests", word, test_writers())


def _check_name(kind: str, word: str, known: tuple[str, ...]) -> str:
    if word not in known:
        raise ValueError(f"{word[:50]!r} is not a {kind}; {suggestion(word, known)}")
    return word
