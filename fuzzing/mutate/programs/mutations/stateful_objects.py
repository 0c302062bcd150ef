"""A value goes through an object with behaviour of its own: operators, properties, attributes."""

from __future__ import annotations

from fuzzing.mutate.programs.mutations import Parameters, register_mutation
from fuzzing.mutate.programs.rewriting import Rewriting


@register_mutation("stateful-objects")
class StatefulObjects(Rewriting):
    """Sound: the object holds the tensor itself and gives it back; what else it counts is not read."""

    forms = ("call", "item", "attribute", "setter", "context", "slots", "static")

    def text(self, number: int, value: str, parameters: Parameters) -> str:
        """The class, the object and the value taken from it."""
        kept, target, name = f"kept{number}", parameters["target"], f"State{number}"
        count = "        self.count = getattr(self, 'count', 0) + 1\n"
        body, use = {
            "call": (f"    def __call__(self, item):\n{count}        return item\n", f"{kept}({value})"),
            "item": (
                "    def __setitem__(self, key, item):\n        self.__dict__[key] = item\n"
                "    def __getitem__(self, key):\n        return self.__dict__[key]\n",
                f"{kept}['item']",
            ),
            "attribute": ("    count = 0\n", f"{kept}.item"),
            "setter": (
                "    @property\n    def item(self):\n        return self._item\n"
                f"    @item.setter\n    def item(self, item):\n{count}        self._item = item\n",
                f"{kept}.item",
            ),
            "context": (
                "    def __enter__(self):\n        return self\n"
                f"    def __exit__(self, *error):\n{count}        return False\n",
                f"{kept}.item",
            ),
            "slots": ("    __slots__ = ('item',)\n", f"{kept}.item"),
            "static": (
                "    @staticmethod\n    def same(item):\n        return item\n",
                f"{kept}.same({value})",
            ),
        }[parameters["form"]]
        set_ = {
            "item": f"{kept}['item'] = {value}\n",
            "attribute": f"{kept}.item = {value}\n{kept}.count += 1\n",
            "setter": f"{kept}.item = {value}\n",
            "context": f"with {kept} as {kept}:\n    {kept}.item = {value}\n",
            "slots": f"{kept}.item = {value}\n",
        }.get(parameters["form"], "")
        return f"class {name}:\n{body}{kept} = {name}()\n{set_}{target} = {use}"
