"""Signatures: what makes two bad outcomes the same bug."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from fuzzing.cases.plain_types import plainer_types
from fuzzing.compiler_messages import failed_aten_operator, normalize_message, parse_message
from fuzzing.oracles.pair_sides import raised_error
from fuzzing.outcomes import Evidence, Mismatch, Outcome, Phase, Verdict
from fuzzing.torch_aliases import bare_api, canonical_api
from fuzzing.triage.native_stack import native_frames, runtime_message
from fuzzing.triage.operator_families import shared_fields
from fuzzing.triage.python_stack import calling_converter, exception_frames, is_dispatcher
from fuzzing.triage.title import choose_subject, name_part, title
from fuzzing.triage.traits import Traits
from fuzzing.triage.type_needs import GRAPH_FRONTEND, with_plainer_types

_PHASES = {
    Phase.IMPORT: "import",
    Phase.CONVERT: "conversion",
    Phase.COMPILE: "compilation",
    Phase.RUN: "execution",
}
#: Fewest characters of a message that distinguish failures by themselves, as in a title.
_SPECIFIC = 32
#: Fewest words of a heading, such as "Cannot parse attribute:" (TVM). Python's own short messages, such as
#: "list index out of range", are none.
_HEADING_WORDS = 3
#: Capitalized words of short messages that name no operator.
_PYTHON_NAMES = frozenset({"False", "None", "Tensor", "True"})
_NONFINITE = re.compile(r"^[^'\"]*\b(?:nan|inf)")
#: The largest numbers of float16, bfloat16, float32 and float64 (IEEE 754; bfloat16 has 8 bits).
_LARGEST = (65504.0, (2 - 2.0**-7) * 2.0**127, (2 - 2.0**-23) * 2.0**127, (2 - 2.0**-52) * 2.0**1023)
_INFINITE = re.compile(r"-?inf$")
#: The need of an attribute that earlier reductions kept where one direction alone shows the failure.
_DIRECTION = re.compile(r"\bdirection=")
#: Fields that two signatures of one bug have alike, whatever else is compared: most pairs differ here.
_ALWAYS_EQUAL = ("backend", "frontend", "phase", "verdict", "error")
#: Prefix of the keys of failures that belong to no bug, see `compute_unsorted_key`.
UNSORTED = "unsorted-"


@dataclass(frozen=True)
class Signature:
    """The identity of a bug.

    key     16 hexadecimal digits of SHA-256 over `fields`
    title   one line for the title of an issue, see `fuzzing.triage.title`
    fields  what the key is made of, and `proven`: see `compute_signature`
    """

    key: str
    title: str
    fields: dict[str, Any]


@dataclass(frozen=True)
class _Symptom:
    """What an outcome shows of its cause, without anything that changes from run to run."""

    error: str = ""
    complaint: str = ""
    frames: tuple[str, ...] = ()

    @property
    def identifies(self) -> bool:
        """Whether it is one bug whatever the program: an exception with a sentence and a place.

        The condition of a failed check is code, which other operators of a file may share.
        """
        heading = self.complaint.endswith(":") and len(self.complaint.split()) >= _HEADING_WORDS
        specific = len(self.complaint) >= _SPECIFIC or heading or _names_operator(self.complaint)
        code = self.complaint.startswith("Check '") or self.error.startswith("SIG")
        return bool(self.frames and specific and not code)


def _names_operator(complaint: str) -> bool:
    """Whether a sentence names an operator behind its second word, as in "no value in Constant"."""
    names = (word for word in complaint.split()[2:] if word not in _PYTHON_NAMES)
    return any(word[0].isupper() and word[1:2].islower() for word in names)


def compute_signature(
    outcome: Outcome, operator: str, frontend: str = "ONNX", reduced: Traits | None = None
) -> Signature:
    """The signature of a bad outcome of a case that tests `operator`.

    Its fields are backend, frontend, phase, verdict, operator (`canonical_api`), and of the symptom:
        error      the exception's class without its module, or the signal; "" where a source file of the
                   compiler is named, which is more specific and outlives changes of the Python binding
        complaint  the failed check or the normalized message, or the kinds of difference
        frames     the compiler's source file, or its Python frames, innermost first
        rewrite    the rewrite that is wrong in a pair of models that was not reduced; only if known
        root       of a torch program that was not converted the operator of ATen that the message names

    Of a case that was reduced, `reduced` describes the rest. It decides in place of `operator`, which
    names what the case was made to test, and adds fields:
        dtypes, needs  see `Traits`; no types of an exception that tells its place
        component      the part of the compiler that the ablation blames, "" if it was not climbed
        root           the symptom upstream, where the case only shows what was computed wrongly before
        proven         needs that the bug has for certain, see `Traits`; no part of the key. Optional inputs
                       of crashes alone: without one other numbers are computed, which may hide a wrong result

    An exception whose message and innermost frame identify it has neither operator nor these fields: what
    calls the failing function is the test's. Where a check outside the frontend refuses what a converter has
    built, the converter is the second frame: each that builds such a thing is wrong by itself. Where the
    message names ATen's operator, that is its name. If the stack does not name the converter, the operator
    stays.
    """
    symptom = _SYMPTOMS.get(outcome.verdict, _other_symptom)(outcome)
    fields: dict[str, Any] = {
        "backend": outcome.backend,
        "frontend": frontend,
        "phase": outcome.phase.value,
        "verdict": outcome.verdict.value,
        "operator": canonical_api(operator),
        "error": symptom.error,
        "complaint": symptom.complaint,
        "frames": list(symptom.frames),
    }
    subject = operator
    if reduced is None and outcome.evidence.rewrite:
        fields["rewrite"] = outcome.evidence.rewrite
    if reduced is not None:
        subject = choose_subject(reduced.pattern, reduced.operators, outcome.evidence.message)
        fields |= {
            "operator": reduced.pattern,
            "dtypes": list(reduced.dtypes),
            "needs": list(reduced.needs),
            "component": outcome.evidence.component,
            "proven": sorted({*reduced.proven, *(reduced.proven_inputs if _crashes(outcome) else ())}),
        }
        if reduced.root is None and _tells_place(fields):
            fields["dtypes"] = []
        if reduced.root is not None:
            fields["root"] = dict(reduced.root)
            subject = name_part(subject, str(reduced.root.get("operator", "")))
    part = failed_aten_operator(outcome.evidence.message)
    if symptom.identifies and outcome.verdict is Verdict.CRASH and "root" not in fields:
        stack = outcome.evidence.traceback if outcome.phase is Phase.CONVERT else ()
        converter = part or calling_converter(stack)
        unnamed: dict[str, Any] = {"operator": "", "dtypes": [], "needs": [], "component": "", "proven": []}
        if converter and is_dispatcher(converter):
            del unnamed["operator"]
        fields |= {name: value for name, value in unnamed.items() if name in fields}
        fields["frames"] = [*fields["frames"][:1], *([converter] if converter else ())]
    elif part and "root" not in fields:
        fields["root"] = {"operator": part}
        subject = name_part(subject, part)
    return Signature(compute_key(fields), _build_title(outcome, subject, frontend, symptom), fields)


def _crashes(outcome: Outcome) -> bool:
    return outcome.verdict is Verdict.CRASH


def _tells_place(fields: Mapping[str, Any]) -> bool:
    """Whether an exception was raised with a place, or a sentence for one, or a process died at a place: the
    types that it meets there tell no bugs apart.
    """
    complaint, error = str(fields.get("complaint", "")), str(fields.get("error", ""))
    if fields.get("verdict") != Verdict.CRASH.value or error == "exit":
        return False
    if error.startswith("SIG"):
        return bool(fields.get("frames"))
    return bool(complaint and (fields.get("frames") or len(complaint) >= _SPECIFIC))


def compute_unsorted_key(fields: Mapping[str, Any]) -> str:
    """The key of failures that are not reduced, of several operators, and that nothing but a difference of
    outputs describes: which bug they show is unknown, so they are no bug of their own and part of none.

    Those with a known wrong rewrite are kept apart by it.
    """
    return UNSORTED + compute_key({**fields, "operator": ""})


def compute_key(fields: Mapping[str, Any]) -> str:
    """The key of a signature with these fields; what is proven tells bugs apart and names none."""
    canonical = json.dumps({name: fields[name] for name in fields if name != "proven"}, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def explains(one: Signature, other: Signature) -> bool:
    """Whether what has the signature `one` is why there is the signature `other`.

    They are alike but for needs, and whatever the one bug needs, the other case has. A case whose bug is
    upstream, or in a part of what its call is made of, counts as what is wrong there would; the part of the
    compiler with its symptom is no evidence. Where such a part is known of one call alone, the calls decide.
    Of an ONNX graph the other case may have inputs of further types: in the one, such operands (axes, sizes)
    are initializers, whose types are no field. It may not need a textual attribute more: that chooses the
    algorithm, and the reduction found that the default one is right on its inputs. Nor may it need more, or
    inputs of further types, where that is proven and `one` is of a release that knows of it. Operators of a
    family are one where both need what they share (`fuzzing.triage.operator_families`). An element type that
    is not proven of the other stands for a plainer one of its kind (`fuzzing.triage.type_needs`), and two
    directions of a recurrent operator for one. Of an operator's exceptions that name a key which a function
    misses, needs tell none apart. Of an output of a wrong shape its type tells nothing more.
    """
    found = tuple(_compared_fields(one.fields, other.fields))
    if any(found[0].get(name) != found[1].get(name) for name in _ALWAYS_EQUAL):
        return False
    shared = tuple(map(shared_fields, found))
    return _explains(*found) or (shared != found and _explains(*shared))


def _explains(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """`explains`, of fields with what is known of the root in place."""
    left = {"needs", "root", "proven"} | ({"component"} if "root" in first or "root" in second else set())
    second = with_plainer_types(second, first)
    mine, others = ({name: it[name] for name in it.keys() - left} for it in (first, second))
    if first.get("frontend") != GRAPH_FRONTEND and mine.get("operator") and others.get("operator"):
        mine["operator"], others["operator"] = map(bare_api, (mine["operator"], others["operator"]))
    for each in (mine, others):
        if each.get("verdict") == Verdict.WRONG_RESULT.value:
            each["complaint"] = ", ".join(sorted(difference_kinds(str(each["complaint"]))))
    types, further = (set(each.get("dtypes", ())) for each in (mine, others))
    untyped = "dtypes" in mine and "dtypes" in others and not types and _tells_place(mine)
    proven = _proven_beyond(first, second)
    fixed = any(f"{kind} inputs" in proven for kind in further - types)
    if untyped or (first.get("frontend") == GRAPH_FRONTEND and types and types <= further and not fixed):
        others["dtypes"] = mine["dtypes"]
    if _names_key(mine) and _names_key(others):
        return mine == others
    needs, more = (set(it.get("needs", ())) for it in (first, second))
    if first.get("frontend") == GRAPH_FRONTEND and _chooses_algorithm(more - needs, second.get("proven", ())):
        return False
    return mine == others and needs <= more and not proven & (more - needs)


def _chooses_algorithm(needs: Collection[str], proven: Collection[str]) -> bool:
    """Whether a textual attribute is among these needs of a graph; one of directions only if it is proven."""
    return any("=" in need and (need in proven or not _DIRECTION.search(need)) for need in needs)


def _names_key(fields: Mapping[str, Any]) -> bool:
    """Whether a function of the compiler did not find a key that the message names: what else the case needs
    to get there tells no bugs apart.
    """
    return bool(fields.get("error") == KeyError.__name__ and fields.get("complaint") and fields.get("frames"))


def _proven_beyond(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    """What is proven of `other` and not of `one`, but for types, whose numbers may show more of the same bug;
    nothing if `one` is of a release that proved nothing, or `other` shows what was wrong upstream.
    """
    if "proven" not in one or "root" in other:
        return set()
    beyond = set(other.get("proven", ())) - set(one["proven"])
    return {need for need in beyond if not plainer_types(need)}


def _compared_fields(*both: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The fields of two signatures with what is known of the root in place of what the case shows."""
    inside = all("operator" in fields.get("root", {}) for fields in both)
    compared = list[dict[str, Any]]()
    for fields in both:
        root = fields.get("root", {})
        compared.append({**fields, **(root if inside or "operator" not in root else {})})
    return compared


def _crash_symptom(outcome: Outcome) -> _Symptom:
    seen = outcome.evidence
    return _exception_symptom(seen) if seen.error else _signal_symptom(seen)


def _exception_symptom(seen: Evidence) -> _Symptom:
    found = parse_message(seen.message)
    if found.frame:
        return _Symptom("", found.template, (found.frame,))
    return _Symptom(seen.error.rsplit(".", 1)[-1], found.template, exception_frames(seen.traceback))


def _signal_symptom(seen: Evidence) -> _Symptom:
    message = runtime_message(f"{seen.native}\n{seen.log}")
    return _Symptom(seen.signal or "exit", message, native_frames(seen.native))


def _hang_symptom(outcome: Outcome) -> _Symptom:
    """Where a process was when its time ran out is chance; that it hangs is all there is."""
    del outcome
    return _Symptom()


def _wrong_result_symptom(outcome: Outcome) -> _Symptom:
    kinds = sorted({_difference(mismatch) for mismatch in outcome.evidence.mismatches})
    return _Symptom(complaint=", ".join(kinds))


def _difference(mismatch: Mismatch) -> str:
    if mismatch.kind == "type":
        return f"wrong type ({mismatch.detail})"
    if mismatch.kind == "value" and _is_largest(mismatch.got) and _INFINITE.match(mismatch.want):
        return "the largest number for infinity"
    if mismatch.kind == "value" and _NONFINITE.match(f"{mismatch.got} {mismatch.want}"):
        return "NaN or infinity on one side"
    return {"missing": "missing outputs", "shape": "wrong shapes", "value": "wrong values"}[mismatch.kind]


def difference_kinds(complaint: str) -> set[str]:
    """The kinds of difference in the complaint of a wrong result; without types where shapes are wrong."""
    kinds = set(complaint.split(", "))
    return {kind for kind in kinds if not kind.startswith("wrong type")} if "wrong shapes" in kinds else kinds


def _is_largest(number: str) -> bool:
    """Whether a text is the largest number of a float type, to the three digits that numpy prints."""
    try:
        size = abs(float(number))
    except ValueError:
        return False
    return any(abs(size - largest) <= 1e-3 * largest for largest in _LARGEST)


def _other_symptom(outcome: Outcome) -> _Symptom:
    return _Symptom(outcome.evidence.error.rsplit(".", 1)[-1], normalize_message(outcome.summary))


_SYMPTOMS: dict[Verdict, Callable[[Outcome], _Symptom]] = {
    Verdict.CRASH: _crash_symptom,
    Verdict.HANG: _hang_symptom,
    Verdict.OUT_OF_MEMORY: _hang_symptom,
    Verdict.WRONG_RESULT: _wrong_result_symptom,
}


def _build_title(outcome: Outcome, subject: str, frontend: str, symptom: _Symptom) -> str:
    where = symptom.frames[0] if symptom.frames else outcome.evidence.component
    return title(frontend, subject, *_describe_failure(outcome, symptom), where)


def _describe_failure(outcome: Outcome, symptom: _Symptom) -> tuple[str, str]:
    """What happens, and its message."""
    phase, seen = _PHASES[outcome.phase], outcome.evidence
    if outcome.verdict is Verdict.HANG:
        return f"{phase} never ends", ""
    if outcome.verdict is Verdict.OUT_OF_MEMORY:
        return f"{phase} runs out of memory", ""
    if outcome.verdict is not Verdict.CRASH:
        return symptom.complaint or outcome.verdict.value.replace("_", " "), ""
    raised, message = raised_error(seen.error, seen.message)
    if raised != seen.error:
        return "only one of two equal programs runs", f"{raised}: {parse_message(message).reason}"
    if seen.error:
        parts = filter(None, (symptom.error, parse_message(seen.message).reason))
        return f"{phase} fails", ": ".join(parts)
    dies = f"{phase} ends the process" if symptom.error == "exit" else f"{phase} dies of {symptom.error}"
    return dies, symptom.complaint
