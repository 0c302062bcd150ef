"""Guarded scripts: one Python file that shows a bug with only numpy and the compiler.

`templates/reproducers/BACKEND.FRONTEND.py.j2` drives a compiler,
`templates/reproducers/programs/FRONTEND.py.j2` runs a frontend's programs, `base.py.j2` is common. A new
backend adds one file for each of its frontends, with a `compiler` block that defines load, versions, convert,
build and run. Without it, reports contain instructions to replay the case (`render_replay_instructions`).
"""

from __future__ import annotations

import shlex
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, cast

import jinja2
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from bot.errors import InternalError
from bot.reports import text
from bot.reports.campaign_view import InstalledToolchain
from bot.reports.literals import base64_lines, literal, text_literal
from bot.reports.templates import environment
from bot.reports.templates import render as render_template
from fuzzing import backends
from fuzzing.cases import EquivalentPair, Sequence, Tensor, TestCase, Value
from fuzzing.cases.programs import get_kind
from fuzzing.cases.values import CARRIERS, RAW_DTYPES
from fuzzing.compiler_messages import message_words
from fuzzing.errors import UnknownNameError
from fuzzing.oracles.output_comparison import bounds_for
from fuzzing.oracles.tolerance_profiles import DEFAULT, EXACT, Bounds, get_profile
from fuzzing.outcomes import MAX_TEXT, Outcome, Verdict

#: Seconds for each phase; the defaults of `fuzzing.execute.limits`.
LIMITS_S: Mapping[str, float] = {"import": 120, "convert": 60, "compile": 120, "run": 30}
MEMORY_BYTES = 4 << 30

#: Smaller models are not compressed.
PACKED_BYTES = 4096

#: Packages that a frontend's programs need besides the compiler, for the `pip install` line.
_FRONTEND_PACKAGES: Mapping[str, frozenset[str]] = {
    "torch": frozenset({"torch"}),
    "keras": frozenset({"keras", "torch", "onnxscript"}),
}
_OPTIONAL_PACKAGES = frozenset().union(*_FRONTEND_PACKAGES.values(), {"triton"})


def pip_command(
    toolchain: InstalledToolchain, backend: str = "", frontend: str = "", further: Iterable[str] = ()
) -> str:
    """The command that installs the requirements; with backend and frontend, only those of such a case.

    further  more packages to install, in the shell's words

    What is laid over the packages follows.
    """
    wanted = toolchain.requirements
    if backend:
        known = backend in backends.names()
        own = canonicalize_name(backends.get(backend).package) if known else ""
        extra = _FRONTEND_PACKAGES.get(frontend, frozenset())
        for kind, needed in backends.get(backend).exporters.items() if known else ():
            extra |= frozenset(needed) if get_kind(kind).frontend == frontend else frozenset()
        wanted = [
            item for item in wanted if _name(item) == own or _name(item) not in _OPTIONAL_PACKAGES - extra
        ]
        given = {_name(item) for item in wanted}
        wanted = [*wanted, *sorted(extra - given - {"onnxscript"})]
    names = {_name(item) for item in wanted}
    rest = [item for item in further if _name(item) not in names]
    command = " ".join(["pip install", *(shlex.quote(text.one_line(item)) for item in wanted), *rest])
    return f"{command} && {toolchain.sources}" if toolchain.sources else command


def checkout_commands(target: str, commit: str, overlay: Mapping[str, str]) -> str:
    """Shell commands that lay a commit's folders over installed packages, as the `overlay` provisioner does.

    overlay  folder of the repository → folder in site-packages; "" is returned for none
    """
    if not overlay:
        return ""
    _, slash, name = target.partition("/")
    clone = [f"git clone https://github.com/{target}", f"cd {name}"] if slash else []
    site = """$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"""
    copies = [
        f'cp -r {shlex.quote(path)}/. "{site}"/{shlex.quote(place)}/' for path, place in overlay.items()
    ]
    return " && ".join([*clone, f"git checkout {commit}", *copies])


def _name(requirement: str) -> str:
    try:
        return canonicalize_name(Requirement(requirement).name)
    except InvalidRequirement:
        return requirement


def has_template(backend: str, frontend: str) -> bool:
    """Whether there is a template for bugs of this backend in programs of this frontend."""
    try:
        environment().get_template(_template(backend, frontend))
        environment().get_template(f"reproducers/programs/{frontend}.py.j2")
    except jinja2.TemplateNotFound:
        return False
    return True


def has_guarded_script(backend: str, case: TestCase) -> bool:
    """Whether `render` has a script for this backend and case; pairs have scripts of their own."""
    return not isinstance(case.program, EquivalentPair) and has_template(backend, case.program.frontend)


def render(
    case: TestCase,
    outcome: Outcome,
    toolchain: InstalledToolchain,
    *,
    filename: str = "reproducer.py",
    limits: Mapping[str, float] = LIMITS_S,
    memory: int = MEMORY_BYTES,
) -> str:
    """The guarded script of a failing `outcome` of `case`, as the text of one Python file.

    Raises InternalError for a verdict that is no failure, and if `has_template` is false.
    """
    if not outcome.verdict.is_failure:
        raise InternalError(f"{outcome.verdict.value} is no bug to reproduce")
    frontend = case.program.frontend
    if not has_template(outcome.backend, frontend):
        raise InternalError(f"no reproducer for {outcome.backend}: {_template(outcome.backend, frontend)}")
    options, profile = full_configuration(outcome)
    inputs = [(name, _dtype(value), literal(value, 8)) for name, value in case.values()]
    return render_template(
        _template(outcome.backend, frontend),
        header=_header(case, outcome, toolchain),
        provenance=_provenance(case),
        pip=pip_command(toolchain, outcome.backend, frontend),
        needs=", but the first run of inductor needs a C++ compiler" if outcome.backend == "inductor" else "",
        filename=filename,
        frontend=frontend,
        device=outcome.device,
        options=options,
        verdict=outcome.verdict.value,
        phase=outcome.phase.value,
        error=text.one_line(outcome.evidence.error),
        words=message_words(outcome.evidence.message),
        max_message=MAX_TEXT,
        signal=text.one_line(outcome.evidence.signal),
        compare=case.comparison,
        limits=dict(limits),
        memory=memory,
        carriers={name: CARRIERS[name] for name in sorted(RAW_DTYPES)},
        inputs=inputs,
        known=case.expected is not None,
        expected=_expected(case, profile),
        bounds=_all_bounds(case, profile),
        rule=get_profile(profile)("float32", case.tolerance),
        **_program(case),
    )  # fmt: skip


def render_replay_instructions(
    case: TestCase, outcome: Outcome, toolchain: InstalledToolchain, folder: str
) -> str:
    """Instructions to replay a bug without a script; the case is kept in `folder`."""
    return render_template(
        "reproducers/replay.txt.j2",
        header=_header(case, outcome, toolchain),
        provenance=_provenance(case),
        pip=pip_command(toolchain, outcome.backend, case.program.frontend),
        command=replay_command(outcome, folder),
        folder=folder,
    )  # fmt: skip


def replay_command(outcome: Outcome, case: str) -> str:
    """The `assay replay` command of an outcome, with its configuration."""
    options, profile = options_and_profile(outcome)
    words = ["assay", "replay", case, "--backend", outcome.backend, "--device", outcome.device]
    for name, value in options.items():
        words += ["--option", f"{name}={value}"]
    return shlex.join([*words, *(["--profile", profile] if profile != DEFAULT else [])])


def _template(backend: str, frontend: str) -> str:
    return f"reproducers/{backend}.{frontend}.py.j2"


def options_and_profile(outcome: Outcome) -> tuple[dict[str, str], str]:
    """The options and the profile of a configuration, see `fuzzing.oracles.configuration`."""
    options = dict(word.split("=", 1) for word in outcome.configuration.split() if "=" in word)
    return options, options.pop("profile", DEFAULT)


def full_configuration(outcome: Outcome) -> tuple[dict[str, str], str]:
    """All options, defaults included, and the profile."""
    options, profile = options_and_profile(outcome)
    try:
        return backends.get(outcome.backend).resolve_options(options), profile
    except UnknownNameError:  # a backend of another version
        return options, profile


def _program(case: TestCase) -> dict[str, Any]:
    """Template variables of the frontend's part of the script."""
    data = case.program.to_bytes()
    if case.program.frontend == "onnx":
        # Models repeat tensor names: compressed they are a tenth.
        packed = len(data) > PACKED_BYTES
        return {"packed": packed, "model": base64_lines(zlib.compress(data, 9) if packed else data)}
    program = cast("Any", case.program)
    names = [tensor.name for tensor in program.tensors] if case.program.frontend == "keras" else []
    return {"packed": False, "text": text_literal(program.source()), "names": names}


def _header(case: TestCase, outcome: Outcome, toolchain: InstalledToolchain) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in toolchain.versions.items())
    phase = outcome.phase.value
    what = {
        Verdict.CRASH: f"crashes in {phase}",
        Verdict.HANG: f"hangs in {phase}",
        Verdict.WRONG_RESULT: "gives a wrong result",
        Verdict.OUT_OF_MEMORY: f"runs out of memory in {phase}",
    }[outcome.verdict]
    operator = case.provenance.operator or "a model"
    summary = text.cut(text.one_line(outcome.summary), 500)
    how = f", set to {text.one_line(outcome.configuration)}" if outcome.configuration else ""
    blamed = text.one_line(outcome.evidence.component)
    first = f"First fails at: {blamed}\n" if blamed else ""
    return f"{outcome.backend} {what}: {operator}\n{summary}\n{first}Seen with {versions}{how}:"


def _provenance(case: TestCase) -> str:
    origin = case.provenance
    test = f"{origin.library} {origin.version}'s test {origin.original_test()}"
    if origin.is_reduced:
        return f"Found and written by a machine: Assay, which made the program small. It came from {test}."
    kept = "and its expected outputs are" if case.expected is not None else "is"
    return f"Found and written by a machine: Assay. The program {kept} {test}."


def _dtype(value: Value) -> str:
    if isinstance(value, Sequence):
        return value.items[0].dtype if value.items else ""
    return value.dtype if isinstance(value, Tensor) else ""


def _expected(case: TestCase, profile: str) -> list[tuple[str, str, str, float, float]]:
    """The outputs to compare, with the bounds that the oracle applies to each."""
    rows: list[tuple[str, str, str, float, float]] = []
    for name, value in case.expected or ():
        bounds = _bounds(value, case, profile)
        rows.append((name, _dtype(value), literal(value, 8), bounds.rtol, bounds.atol))
    return rows


def _bounds(value: Value, case: TestCase, profile: str) -> Bounds:
    """One bound for a whole output; for a sequence that of its loosest item."""
    if isinstance(value, Sequence):
        each = [bounds_for(item, case.tolerance, profile) for item in value.items]
        return max(each, key=lambda one: (one.rtol, one.atol), default=Bounds())
    return bounds_for(value, case.tolerance, profile) if isinstance(value, Tensor) else Bounds()


def _all_bounds(case: TestCase, profile: str) -> list[tuple[str, float, float]]:
    """The bounds of all element types, for outputs that are computed when the script runs."""
    rule = get_profile(profile)
    found = ((dtype, rule(dtype, case.tolerance)) for dtype in sorted(CARRIERS))
    return [(dtype, bounds.rtol, bounds.atol) for dtype, bounds in found if bounds != EXACT]
