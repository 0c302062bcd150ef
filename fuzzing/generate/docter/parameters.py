"""One parameter's constraints, from its documentation and declarations."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from fuzzing.generate.docter import (
    api_documentation,
    conventions,
    declarations,
    phrase_patterns,
    shape_patterns,
    type_names,
)
from fuzzing.generate.docter.latex import strip_markup
from fuzzing.generate.docter.native_signatures import Declared
from fuzzing.generate.docter.record import (
    Dtype,
    Evidence,
    Form,
    Length,
    Parameter,
    Place,
    Range,
    Rank,
    Structure,
)

_MAX_EVIDENCE = 300  # characters of a sentence that are kept
_SCALARS = frozenset({"int", "float"})
_LISTS = frozenset({"list(int)", "list(float)"})
_FEW = {"single": 1, "one": 1, "two": 2, "double": 2, "three": 3, "triple": 3}
_NAMED_TUPLE = re.compile(
    r"tuple\s+`*\(([\w\s]+(?:,\s*[\w\s]+)*,?)\)`*"
    r"|(?:a )?(two|three|double|triple)[- ]?(?:element |integer )?(?:tuple|ints)|tuple of (two|three)"
)


@dataclass(frozen=True)
class Description:
    """The texts about a parameter.

    type, text  of the docstring's entry; "" where there is none
    main        the API's first tensor, "" if it has none
    names       of all parameters
    """

    api: str
    place: Place
    declared: Declared
    type: str
    text: str
    main: str
    names: frozenset[str]

    @property
    def name(self) -> str:
        """The parameter's name."""
        return self.declared.name

    @property
    def evidence_text(self) -> Evidence:
        """The docstring's sentence, or the signature if there is none."""
        sentence = f"{self.name} ({self.type}): {self.text}" if self.type else f"{self.name}: {self.text}"
        if not self.text and not self.type:
            return Evidence(self.declared.origin, _format_declaration(self.declared))
        return Evidence("docstring", sentence[:_MAX_EVIDENCE])


def _format_declaration(item: Declared) -> str:
    text = f"{item.name}: {item.type}" if item.type else item.name
    return text if item.default is None else f"{text} = {item.default}"


def describe(api: str, place: Place, item: Declared, main: str, names: frozenset[str]) -> Description:
    """Looks a parameter up in the documentation."""
    found = api_documentation.find_entry(api, item.name)
    kind, text = (strip_markup(found[1].type), strip_markup(found[1].text)) if found else ("", "")
    return Description(api, place, item, kind, text, main, names)


def read_parameter(description: Description) -> Parameter:
    """The parameter with the constraints that concern it alone."""
    item = description.declared
    found = Parameter(item.name, description.place, item.kind, _default(description))
    reason = conventions.LEFT_OUT.get(item.name, "it is private" if item.name.startswith("_") else "")
    if reason:
        return replace(found, default=found.default or "None", left_out=reason)
    structure = _adjust_structure(description, _structure(description))
    if structure is None:
        return replace(found, left_out="its type is unknown")
    found = replace(found, structure=structure)
    if not any(
        re.fullmatch(r"tensor|int|float|bool|complex|str|dtype|(list|tuple)\(.*\)", item)
        for item in structure.options
    ):
        return replace(found, left_out="it is no value of a case")
    return _with_values(description, found)


def _adjust_structure(description: Description, structure: Structure | None) -> Structure | None:
    if structure is None:
        return None
    options = structure.options
    if description.declared.kind == "variadic":
        options = tuple(
            dict.fromkeys(f"list({option})" if "(" not in option else option for option in options)
        )[:1]
    if description.place == "init":
        options = tuple(option for option in options if "tensor" not in option) or ("inputs",)
    return replace(structure, options=options)


def _with_values(description: Description, found: Parameter) -> Parameter:
    options = frozenset(found.options)
    if found.is_tensor:
        found = replace(found, dtype=_dtype(description), ndim=_rank(description, found))
    if "str" in options or _quotes(description):
        found = replace(
            found,
            enum=phrase_patterns.parse_enumeration(
                description.text, found.default, description.evidence_text
            ),
        )
        if found.enum and found.structure and not options & {"tensor", "int", "float"}:
            found = replace(found, structure=replace(found.structure, options=("str",)))
    if "tensor" in options:
        return replace(
            found,
            range=phrase_patterns.parse_interval(
                description.text, description.evidence_text, description.names
            ),
        )
    if options & (_SCALARS | _LISTS) and not found.is_tensor:
        found = replace(found, range=_range(description, options), length=_length(description, options))
        found = replace(found, form=_form(description, options))
    return found


def as_main_tensor(found: Parameter) -> Parameter:
    """The first parameter as a tensor, whatever else the function of its name takes there."""
    evidence = (
        found.structure.evidence if found.structure else Evidence("signature", "a method of torch.Tensor")
    )
    return replace(found, default=None, structure=Structure(("tensor",), evidence), enum=None, left_out="")


def _default(description: Description) -> str | None:
    item = description.declared
    if item.default is None and item.kind != "variadic" and "optional" in description.type.lower():
        return "None"
    return item.default


def _quotes(description: Description) -> bool:
    default = description.declared.default
    return default is not None and default[:1] in "'\""


# Structure -------------------------------------------------------------------------------------------


def _structure(description: Description) -> Structure | None:
    """From the docstring's type, the annotation, stubs, schemas, default, name or text, in this order."""
    item = description.declared
    if description.type and (options := _known_structures(type_names.parse_structures(description.type))):
        return Structure(_also_lists(description, options), description.evidence_text)
    for declared in (item, *declarations.declared_types(description.api, item.name)):
        if declared.type and (options := _known_structures(type_names.parse_structures(declared.type))):
            overloads = _overloads(description, options) if declared.origin in ("stub", "schema") else options
            overloads = _also_lists(description, overloads)
            return Structure(overloads, Evidence(declared.origin, _format_declaration(declared)))
    by_default = _of_default(description)
    spoken = type_names.parse_structures(" ".join(description.text.split()[:12])) if description.text else ()
    if by_default and by_default != ("float",):
        return Structure(
            _also_lists(description, by_default), Evidence(item.origin, _format_declaration(item))
        )
    named = conventions.structures_by_name(item.name)
    if options := by_default or named or _known_structures(spoken):
        why = "by its default" if by_default else "by its name" if named else ""
        evidence = (
            Evidence("convention", f"{item.name} is {' or '.join(options)} {why}")
            if why
            else description.evidence_text
        )
        return Structure(_also_lists(description, options), evidence)
    return None


def _known_structures(options: tuple[str, ...]) -> tuple[str, ...]:
    kept = tuple(option for option in options if option not in ("none", "dict"))
    return tuple(option for option in kept if option != "complex") or kept  # a stub's Number is complex too


def _overloads(description: Description, first: tuple[str, ...]) -> tuple[str, ...]:
    """The union of overloads that differ only in numbers beside tensors."""
    found = list(first)
    for declared in declarations.declared_types(description.api, description.name):
        found.extend(
            option
            for option in _known_structures(type_names.parse_structures(declared.type))
            if option in ("tensor", "int", "float")
        )
    kept = [
        option
        for option in dict.fromkeys(found)
        if "tensor" not in first or option in (*first, "tensor", "int", "float")
    ]
    return tuple(kept) if "tensor" in first else first


def _also_lists(description: Description, options: tuple[str, ...]) -> tuple[str, ...]:
    text = description.text
    if options == ("list(int)",) and type(phrase_patterns.parse_literal(description.declared.default)) is int:
        return ("int", "list(int)")
    if options == ("int",) and re.search(r"\btuple\b|\blist of\b", text) and "single" in text:
        return ("int", "list(int)")
    return options


def _of_default(description: Description) -> tuple[str, ...]:
    value = phrase_patterns.parse_literal(description.declared.default)
    if isinstance(value, bool):
        return ("bool",)
    if isinstance(value, (int, float, str)):
        return (type(value).__name__,)
    if isinstance(value, (tuple, list)) and value and all(type(item) is int for item in value):
        return ("list(int)",)
    return ()


# Element type and rank -------------------------------------------------------------------------------


def _dtype(description: Description) -> Dtype | None:
    names = type_names.parse_tensor_dtypes(description.type) or type_names.parse_tensor_dtypes(
        description.text[:80]
    )
    names = names or phrase_patterns.parse_dtypes(description.text)
    if (
        not names
        and re.search(r"data type is required to be long|indices|index\b", description.text)
        and re.search(r"indices|^target|index", description.name)
    ):
        names = ("int64",)
    if not names and re.fullmatch(r"\w*mask", description.name) and "BoolTensor" in description.type:
        names = ("bool",)
    return Dtype(names, description.evidence_text) if names else None


def _rank(description: Description, found: Parameter) -> Rank | None:
    stated = shape_patterns.parse_ranks(description.text)
    if stated is None or "list(tensor)" in found.options:
        return None
    return Rank(str(stated[0]), str(stated[1]), description.evidence_text)


# Values ----------------------------------------------------------------------------------------------


def is_dimension(description: Description) -> bool:
    """Whether it names dimensions of the first tensor."""
    return bool(description.main) and bool(conventions.DIMENSION.fullmatch(description.name))


def _range(description: Description, options: frozenset[str]) -> Range | None:
    stated = phrase_patterns.parse_interval(description.text, description.evidence_text, description.names)
    if stated is not None:
        return stated
    if is_dimension(description):
        main = description.main
        evidence_text = Evidence(
            "convention", f"{description.name} names a dimension of {main}, from either end"
        )
        return Range(f"-max(ndim({main}), 1)", f"max(ndim({main}), 1) - 1", evidence_text)
    if options & {"int", "list(int)"}:
        if re.search(r"padding|pad\b", description.name):
            return Range(
                "0", None, Evidence("convention", f"{description.name} is a number of elements added")
            )
        counted = phrase_patterns.parse_count(description.text, description.evidence_text)
        if counted is not None:
            return counted
        if re.fullmatch(
            r"\w*(size|stride|dilation|groups|features|channels|length|chunks|sections|layers|heads|repeats?)\d?",
            description.name,
        ):
            return Range("1", None, Evidence("convention", f"{description.name} counts something"))
        if re.fullmatch(r"shape|sizes?", description.name):
            return Range("0", None, Evidence("convention", f"{description.name} holds lengths"))
    if re.fullmatch(r"(\w*_)?eps", description.name):
        because = f"{description.name} is a small positive number"
        return Range("0", "1", Evidence("convention", because), open_low=True)
    if description.name in ("atol", "rtol"):
        return Range("0", "1", Evidence("convention", f"{description.name} is a tolerance"))
    if re.fullmatch(r"(\w*_)?dropout(_p)?", description.name):
        return Range("0", "1", Evidence("convention", f"{description.name} is a probability"))
    return None


def _length(description: Description, options: frozenset[str]) -> Length | None:
    if not options & _LISTS:
        return None
    if match := re.search(r"(\d)-`*(?:python:)?tuple", description.text):
        return Length(match[1], match[1], description.evidence_text)
    digit = re.search(r"(\d)d(_with_indices)?_?$", description.api)
    if digit and re.fullmatch(
        r"kernel_size|stride|padding|dilation|output_padding|output_size|output_ratio", description.name
    ):
        evidence_text = Evidence(
            "convention", f"{description.api} takes {digit[1]} numbers, one for each dimension"
        )
        return Length(digit[1], digit[1], evidence_text)
    if match := _NAMED_TUPLE.search(description.text):
        count = (
            len([part for part in match[1].split(",") if part.strip()])
            if match[1]
            else _FEW[match[2] or match[3]]
        )
        return Length(str(count), str(count), description.evidence_text)
    for declared in (description.declared, *declarations.declared_types(description.api, description.name)):
        count = declared.length or _count_in(declared.type)
        if count > 1 or (count == 1 and not is_dimension(description)):
            return Length(str(count), str(count), Evidence(declared.origin, _format_declaration(declared)))
    if is_dimension(description):
        evidence_text = Evidence("convention", f"{description.name} names dimensions of {description.main}")
        return Length("1", f"max(ndim({description.main}), 1)", evidence_text)
    return None


def _count_in(text: str) -> int:
    """2 for tuple[int, int] and _size_2_t."""
    if match := re.search(r"[Tt]uple\[((?:int|float)(?:, (?:int|float))*)\]", text):
        return match[1].count(",") + 1
    match = re.search(r"_(?:size|ratio)_(\d)", text)
    return int(match[1]) if match else 0


def _form(description: Description, options: frozenset[str]) -> Form | None:
    if is_dimension(description) and "list(int)" in options:
        evidence_text = Evidence("convention", f"{description.name} names each dimension once")
        return Form("distinct dimensions", evidence_text, description.main)
    return None
