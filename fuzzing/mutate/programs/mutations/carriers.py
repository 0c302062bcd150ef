"""A value goes through a container or an object and comes out again."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.rewriting import Rewriting


@register_mutation("carriers")
class Carriers(Rewriting):
    """Sound: the container holds the tensor itself, not a copy, and gives it back."""

    forms = (
        "dict",
        "list",
        "star",
        "namedtuple",
        "dataclass",
        "class",
        "iterator",
        "comprehension",
        "setdefault",
    )

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The container, and the target taken from it."""
        box, operand = f"box{number}", parameters["operands"][0]
        head, taken = {
            "dict": (f"{box} = {{'item': {value}, **{{'other': {operand}}}}}", f"{box}.pop('item')"),
            "list": (f"{box} = [{operand}]\n{box} += [{value}]\n{box}.reverse()", f"{box}[-2]"),
            "star": (f"*{box}, w{number} = ({operand}, {value})", f"w{number}"),
            "namedtuple": (
                f"from collections import namedtuple\n{box} = namedtuple('Box{number}', 'item other')",
                f"{box}({value}, {operand})._replace(other=None).item",
            ),
            "dataclass": (
                "from dataclasses import make_dataclass\n"
                f"{box} = make_dataclass('Box{number}', ['item'])({value})",
                f"{box}.item",
            ),
            "class": (
                f"class Box{number}:\n    def __init__(self, item):\n        self.item = item\n"
                f"    @property\n    def own(self):\n        return self.item",
                f"Box{number}({value}).own",
            ),
            "iterator": ("", f"next(iter([{value}]))"),
            "comprehension": ("", f"{{name: item for name, item in zip('ab', ({value}, None))}}['a']"),
            "setdefault": (
                f"{box} = {{}}\n{box}.setdefault('item', []).append({value})",
                f"{box}['item'][0]",
            ),
        }[parameters["form"]]
        return f"{head}\n{parameters['target']} = {taken}"
