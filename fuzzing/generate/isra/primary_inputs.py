"""An operator's primary inputs, computed once for a run's settings."""

from __future__ import annotations

from fuzzing.generate.isra.edge_pool import Kind
from fuzzing.generate.isra.settings import GeneratorSettings
from fuzzing.graph.intervals import Interval
from fuzzing.graph.operator_spec import DataInput, OperatorSpec
from fuzzing.graph.types import Shape, TensorType
from fuzzing.rng import Rng

_MORE = 4  # how much more often each further in-degree of Sum, Max, Concat and the like is drawn than 1


class PrimaryInputs:
    """The primary inputs of one operator.

    kinds    the element types and ranks that it takes
    dtypes   the element types of new ones; () if the operator takes none of those requested
    degrees  how many inputs a node may have under the run's limits, all equally likely
    """

    __slots__ = (
        "_limits",
        "_operator",
        "_ranks",
        "_refused",
        "_takes",
        "_within",
        "degrees",
        "dtypes",
        "kinds",
    )

    def __init__(
        self, operator: OperatorSpec, settings: GeneratorSettings, without: tuple[str, ...] = ()
    ) -> None:
        limits = settings.limits
        taken = [dtype for dtype in operator.dtypes if dtype not in without]
        self._operator = operator
        self._limits = limits
        self._within = operator.within
        self._takes = operator.takes
        self._ranks = [rank for rank in operator.ranks if limits.min_rank <= rank <= limits.max_rank]
        self.dtypes = [dtype for dtype in settings.dtypes if dtype in taken]
        self.kinds: frozenset[Kind] = frozenset(
            [(dtype, rank) for dtype in (taken if settings.mixed else self.dtypes) for rank in operator.ranks]
        )
        self._refused = operator.primary < 0 and bool(without)
        self.degrees = _in_degrees(operator, limits.max_inputs)

    @property
    def usable(self) -> bool:
        """Whether a node of this operator can be made at all."""
        operator = self._operator
        if operator.primary < 0:
            return not self._refused
        return bool(self.dtypes and (self._ranks or operator.draw_shape is not None))

    def fits(self, type_: TensorType, range_: Interval) -> bool:
        """Whether an edge of one of the kinds can be the primary input."""
        operator, shape = self._operator, type_.shape
        if shape is None or None in shape:
            if not operator.dynamic:
                return False
        elif self._rejects(shape):  # type: ignore[arg-type]
            return False
        low, high = self._within(type_)
        return low <= range_.low and range_.high <= high

    def _rejects(self, shape: tuple[int, ...]) -> bool:
        if 0 in shape and not self._operator.empty:
            return True
        return self._takes is not None and not self._takes(shape)

    def draw_shape(self, rng: Rng) -> Shape:
        """The shape of a new primary input."""
        operator, limits = self._operator, self._limits
        if operator.draw_shape is not None:
            return operator.draw_shape(rng, limits)
        between, low, high = rng.between, limits.min_dim, limits.max_dim
        if not operator.empty:
            low, high = max(low, 1), max(high, 1)
        return tuple([between(low, high) for _ in range(rng.choice(self._ranks))])


def _in_degrees(operator: OperatorSpec, most: int) -> tuple[int, ...]:
    """The in-degree set. The limit bounds variadic operators only: inputs with a specification of their own,
    such as an LSTM's initial states, do not count. A variadic operator with one input is an identity: seldom.
    """
    if not any(isinstance(slot, DataInput) and slot.many for slot in operator.input_specs[-1:]):
        return operator.degrees
    few = tuple([degree for degree in operator.degrees if degree <= most]) or operator.degrees
    if few[0] == 1 and few[-1] > len(operator.input_specs):
        return few[:1] + few[1:] * _MORE
    return few
