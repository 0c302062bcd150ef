"""More objects of Python, as in `python_states`: of the standard library, of calls and of classes."""

from __future__ import annotations

TEXT = """
# chained iterators
from itertools import chain, islice
s_ = chain.from_iterable([[1, 2], (3,), {4: 5}])
next(s_)
assert (list(islice(s_, 2)), [*s_]) == ([2, 3], [4])

# products
from itertools import combinations, product
s_ = product("ab", repeat=2)
next(s_)
assert ([*s_][0], [*combinations([1, 2, 3], 2)][-1]) == (("a", "b"), (2, 3))

# longest zip
from itertools import zip_longest
s_ = zip_longest([1, 2], "a", fillvalue=7)
next(s_)
assert [*s_] == [(2, 7)]

# grouped
from itertools import groupby
s_ = [(key, len([*rows])) for key, rows in groupby([1, 1, 2, 1])]
assert s_ == [(1, 2), (2, 1), (1, 1)]

# taken and dropped
from itertools import dropwhile, takewhile
s_ = iter([1, 3, 4, 5])
t_ = [*takewhile(lambda each: each < 4, s_)]
assert (t_, [*s_], [*dropwhile(bool, [1, 0, 2])]) == ([1, 3], [5], [0, 2])

# strict zip
try:
    s_ = [*zip([1], [2, 3], strict=True)]
except ValueError as error:
    s_ = len(error.args)
assert s_ == 1

# filtered iterator
s_ = filter(None, [0, 3, 0, 4])
next(s_)
assert ([*s_], [*s_]) == ([4], [])

# iterator with a sentinel
s_ = [3, 2, 1]
t_ = iter(s_.pop, 2)
assert ([*t_], s_) == ([1], [3])

# reversed
s_ = reversed({"a": 1, "b": 2})
next(s_)
assert ([*s_], [*reversed([1, 2])]) == (["a"], [2, 1])

# sorted with a key
s_ = ["bb", "a", "cc", "d"]
s_.sort(key=len, reverse=True)
assert (s_, min(s_, key=len), max([], default=3)) == (["bb", "cc", "a", "d"], "a", 3)

# short circuit
s_ = []
t_ = any(s_.append(each) or each > 1 for each in range(5))
assert (s_, t_, sum([[1], [2]], [3])) == ([0, 1, 2], True, [3, 1, 2])

# lists that are one list
s_ = [[]] * 3
s_[0].append(1)
assert s_ == [[1], [1], [1]]

# tuple that is added to
s_ = ([1],)
try:
    s_[0] += [2]
except TypeError:
    t_ = 5
assert (s_, t_) == (([1, 2],), 5)

# deletion by an index
s_ = [1, 2, 3, 4]
del s_[-1], s_[0]
assert (s_, s_[5:], s_.count(2)) == ([2, 3], [], 1)

# starred targets
s_, *t_, u_ = range(5)
[x_], (w_, *_) = [1], "xyz"
assert (s_, t_, u_, x_, w_) == (0, [1, 2, 3], 4, 1, "x")

# order of evaluation
s_ = []
t_ = {}
t_[s_.append(1)] = s_.append(2)
assert (s_, t_) == ([2, 1], {None: None})

# keys of equal numbers
s_ = {1: "a"}
s_[True] = "b"
s_[1.0] = "c"
assert (s_, [*map(type, s_)], len({0, False, 0.0})) == ({1: "c"}, [int], 1)

# not a number in a list
s_ = float("nan")
assert ([s_] == [s_], s_ in [s_], s_ == s_, [s_].count(s_)) == (True, True, False, 1)

# merged dicts
s_ = {"a": 1} | {"b": 2, "a": 3}
s_ |= [("c", 4)]
t_ = s_.popitem()
assert (s_, dict.fromkeys("ab", 0), t_) == ({"a": 3, "b": 2}, {"a": 0, "b": 0}, ("c", 4))

# dict that changes under its views
s_ = {"a": 1, "b": 2}
t_ = s_.items()
s_["a"] = 5
assert (("a", 5) in t_, s_.keys() & {"b", "c"}, [*s_.values()]) == (True, {"b"}, [5, 2])

# chained maps
from collections import ChainMap
s_ = ChainMap({"a": 1}, {"a": 2, "b": 3})
s_["b"] = 4
assert (s_["a"], s_.maps[0], len(s_), s_.parents["b"]) == (1, {"a": 1, "b": 4}, 2, 3)

# counters that are added
from collections import Counter
s_ = Counter(a=1, b=2) + Counter(b=1, c=-3)
s_.subtract(a=2)
assert (s_, [*Counter(a=2).elements()]) == (Counter(b=3, a=-1), ["a", "a"])

# order of ordered dicts
from collections import OrderedDict
s_, t_ = OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)
assert (s_ == t_, dict(s_) == dict(t_), [*reversed(s_)]) == (False, True, ["b", "a"])

# frozen set
s_ = frozenset([1, 2])
t_ = {s_: 3}
assert (t_[frozenset([2, 1])], s_ | {3}, s_ <= {1, 2}) == (3, frozenset([1, 2, 3]), True)

# heap
import heapq
s_ = [5, 1, 4]
heapq.heapify(s_)
heapq.heappush(s_, 0)
assert ([heapq.heappop(s_) for _ in range(4)], heapq.nsmallest(1, [3, 2])) == ([0, 1, 4, 5], [2])

# bisection
import bisect
s_ = [1, 3, 3, 5]
bisect.insort(s_, 4)
assert (s_, bisect.bisect_left(s_, 3), bisect.bisect(s_, 3)) == ([1, 3, 3, 4, 5], 1, 3)

# getters
from operator import attrgetter, itemgetter, methodcaller
s_ = itemgetter(1, 0)([5, 6])
assert (s_, attrgetter("real")(3), methodcaller("split", ",")("a,b")) == ((6, 5), 3, ["a", "b"])

# keys from comparisons
from functools import cmp_to_key, reduce
s_ = sorted([1, 3, 2], key=cmp_to_key(lambda one, other: other - one))
assert (s_, reduce(lambda one, other: one * 10 + other, s_, 7)) == ([3, 2, 1], 7321)

# dispatched function
from functools import singledispatch
@singledispatch
def g_(given):
    return 1
@g_.register
def _(given: int):
    return 2
assert (g_("a"), g_(3), g_(True)) == (1, 2, 2)

# wrapped function
from functools import wraps
def h_(function):
    @wraps(function)
    def inner(*given, **named):
        return function(*given, **named) + 1
    return inner
@h_
def g_(one, *, two=2):
    return one + two
assert (g_(1), g_(1, two=5), g_.__name__[0], g_.__wrapped__(1)) == (4, 7, "g", 3)

# total order
from functools import total_ordering
@total_ordering
class Kind_:
    def __init__(self, kept):
        self.kept = kept
    def __eq__(self, other):
        return self.kept == other.kept
    def __lt__(self, other):
        return self.kept < other.kept
assert (Kind_(1) >= Kind_(1), Kind_(2) > Kind_(3), max(Kind_(1), Kind_(4)).kept) == (True, False, 4)

# arguments of every kind
def g_(one, /, two=2, *rest, three, **named):
    return one, two, rest, three, named
s_ = g_(*[1], 5, *(6,), **{"three": 3}, four=4)
assert (s_, g_(1, three=0, one=9)) == ((1, 5, (6,), 3, {"four": 4}), (1, 2, (), 0, {"one": 9}))

# arguments that are missing
def g_(one, *, two):
    return one + two
try:
    s_ = g_(1)
except TypeError:
    s_ = 7
assert s_ == 7

# keyword arguments are a copy
def g_(**named):
    named["a"] = 5
    return named
s_ = {"a": 1}
assert (g_(**s_), s_) == ({"a": 5}, {"a": 1})

# bound methods
class Kind_:
    def own(self):
        return self.kept
s_ = Kind_()
s_.kept = 3
t_ = s_.own
s_.kept = 4
assert (t_(), t_ == s_.own, t_.__self__ is s_, t_.__func__ is Kind_.own) == (4, True, True, True)

# contents of a cell
def h_():
    kept = 1
    def inner():
        return kept
    kept = 2
    return inner
s_ = h_()
assert (s_(), s_.__closure__[0].cell_contents) == (2, 2)

# scope of a class body
s_ = 2
class Kind_:
    kept = s_ + 1
    def own(self):
        return s_
    made = [each for each in range(kept)]
s_ = 7
assert (Kind_.kept, Kind_().own(), Kind_.made) == (3, 7, [0, 1, 2])

# subclass that is told
class Kind_:
    seen = []
    def __init_subclass__(cls, own=0, **named):
        super().__init_subclass__(**named)
        Kind_.seen.append(own)
class Other_(Kind_, own=4):
    pass
assert (Kind_.seen, Other_.seen is Kind_.seen) == ([4], True)

# descriptor that is named
class Named_:
    def __set_name__(self, owner, name):
        self.name = name
    def __get__(self, instance, owner=None):
        return self.name if instance is None else instance.__dict__[self.name]
class Kind_:
    own = Named_()
s_ = Kind_()
s_.__dict__["own"] = 5
assert (Kind_.own, s_.own) == ("own", 5)

# every attribute
class Kind_:
    kept = 1
    def __getattribute__(self, name):
        return 7 if name == "kept" else super().__getattribute__(name)
s_ = Kind_()
s_.other = 2
assert (s_.kept, s_.other, Kind_.kept) == (7, 2, 1)

# written attributes
class Kind_:
    def __setattr__(self, name, value):
        super().__setattr__(name, value + 1)
    def __delattr__(self, name):
        super().__setattr__(name, 0)
s_ = Kind_()
s_.kept = 3
t_ = s_.kept
del s_.kept
assert (t_, s_.kept) == (4, 1 - 1)

# iterator of a class
class Kind_:
    def __init__(self):
        self.turn = 0
    def __iter__(self):
        return self
    def __next__(self):
        self.turn += 1
        if self.turn > 3:
            raise StopIteration
        return self.turn
s_ = Kind_()
next(s_)
assert ([*s_], s_.turn, list(zip(Kind_(), "ab"))) == ([2, 3], 4, [(1, "a"), (2, "b")])

# sequence of a class
class Kind_:
    def __getitem__(self, place):
        return [4, 5][place]
assert ([*Kind_()], 5 in Kind_(), [*reversed([*Kind_()])]) == ([4, 5], True, [5, 4])

# container of a class
class Kind_:
    def __contains__(self, item):
        return item
    def __len__(self):
        return 2
assert (3 in Kind_(), 0 in Kind_(), bool(Kind_()), not Kind_()) == (True, False, True, False)

# conversions of a class
class Kind_:
    def __int__(self):
        return 3
    def __float__(self):
        return 0.5
    def __str__(self):
        return "own"
    def __format__(self, form):
        return form * 2
    def __index__(self):
        return 1
s_ = Kind_()
assert (int(s_), float(s_), str(s_), f"{s_:ab}", [7, 8][s_], f"{s_!s}") == (3, 0.5, "own", "abab", 8, "own")

# comparisons that are chained
s_ = []
def g_(given):
    s_.append(given)
    return given
assert (g_(1) < g_(2) < g_(2) < g_(9), s_) == (False, [1, 2, 2])

# instances that are checked
class Meta_(type):
    def __instancecheck__(cls, item):
        return item == 3
class Kind_(metaclass=Meta_):
    pass
assert (isinstance(3, Kind_), isinstance(4, Kind_), isinstance(True, (str, int))) == (True, False, True)

# class from type
s_ = type("Kind", (list,), {"kept": 4, "own": lambda self: len(self) + self.kept})
assert (s_([1]).own(), s_.__name__, issubclass(s_, list)) == (5, "Kind", True)

# abstract class
from abc import ABC, abstractmethod
class Kind_(ABC):
    @abstractmethod
    def own(self):
        return 1
class Other_(Kind_):
    def own(self):
        return super().own() + 1
try:
    Kind_()
except TypeError:
    s_ = 5
assert (s_, Other_().own()) == (5, 2)

# slots
class Kind_:
    __slots__ = ("kept", "other")
s_ = Kind_()
s_.kept = 1
try:
    s_.third = 2
except AttributeError:
    s_.other = 3
assert (s_.kept, s_.other, hasattr(s_, "third")) == (1, 3, False)

# frozen dataclass
from dataclasses import FrozenInstanceError, asdict, dataclass, field
@dataclass(frozen=True)
class Kind_:
    one: int
    two: int = field(init=False)
    def __post_init__(self):
        object.__setattr__(self, "two", self.one * 2)
s_ = Kind_(3)
try:
    s_.one = 4
except FrozenInstanceError:
    t_ = hash(s_) == hash(Kind_(3))
assert (t_, asdict(s_), s_ == Kind_(3)) == (True, {"one": 3, "two": 6}, True)

# dataclass that inherits
from dataclasses import dataclass
@dataclass
class Kind_:
    one: int = 1
@dataclass
class Other_(Kind_):
    two: int = 2
    one: int = 5
s_ = Other_(two=7)
assert (s_.one, s_.two, str(s_).endswith("(one=5, two=7)"), s_ != Other_()) == (5, 7, True, True)

# flags
from enum import Flag, auto
class Kind_(Flag):
    ONE = auto()
    TWO = auto()
s_ = Kind_.ONE | Kind_.TWO
assert (s_.value, Kind_.ONE in s_, bool(s_ & ~s_), Kind_(2) is Kind_.TWO) == (3, True, False, True)

# matched patterns
class Kind_:
    __match_args__ = ("one",)
    def __init__(self, one):
        self.one = one
def g_(given):
    match given:
        case {"a": 1, **rest}:
            return rest
        case [first, *rest] if first > 1:
            return rest
        case Kind_(3) | None:
            return 5
        case str() as text:
            return text * 2
    return 9
assert (g_({"a": 1, "b": 2}), g_([2, 3]), g_([1]), g_(Kind_(3)), g_("x")) == ({"b": 2}, [3], 9, 5, "xx")

# order of try
s_ = []
def g_():
    try:
        s_.append(1)
        return s_.append(2)
    except ValueError:
        s_.append(9)
    else:
        s_.append(8)
    finally:
        s_.append(3)
assert (g_(), s_) == (None, [1, 2, 3])

# exception that replaces another
s_ = None
try:
    try:
        raise ValueError(1)
    finally:
        raise KeyError(2) from None
except LookupError as error:
    s_ = error
assert (s_.args, s_.__cause__, s_.__suppress_context__) == ((2,), None, True)

# exception of a class
class Kind_(Exception):
    def __init__(self, one, two):
        super().__init__(one)
        self.two = two
try:
    raise Kind_(1, two=2)
except (OSError, Kind_) as error:
    s_ = error
assert (s_.args, s_.two, str(s_)) == ((1,), 2, "1")

# exception that is raised again
s_ = []
def g_():
    try:
        raise ValueError(4)
    except ValueError:
        s_.append(1)
        raise
try:
    g_()
except ValueError as error:
    s_.append(error.args[0])
assert s_ == [1, 4]

# suppressed exception
from contextlib import nullcontext, suppress
with suppress(KeyError), nullcontext(3) as s_:
    {}[s_]
    s_ = 4
assert s_ == 3

# manager that replaces an exception
class Kind_:
    def __enter__(self):
        return 1
    def __exit__(self, kind, error, trace):
        raise ValueError(kind is KeyError)
try:
    with Kind_():
        raise KeyError
except ValueError as error:
    s_ = error.args
assert s_ == (True,)

# managers that end in order
s_ = []
class Kind_:
    def __init__(self, name):
        self.name = name
    def __enter__(self):
        s_.append(self.name)
        return self
    def __exit__(self, *given):
        s_.append(self.name.upper())
        return self.name == "b"
with Kind_("a"), Kind_("b") as t_:
    raise ValueError
assert (s_, t_.name) == (["a", "b", "B", "A"], "b")

# recursion
def g_(depth, kept=()):
    return kept if depth == 0 else g_(depth - 1, (*kept, depth))
assert (g_(3), (lambda f: f(f, 4))(lambda f, n: 1 if n < 2 else n * f(f, n - 1))) == ((3, 2, 1), 24)

# methods of text
s_ = "a-b_c".replace("-", "_").split("_", 1)
assert (s_, "%s%%" % 3, "x".join("ab"), "Ab".swapcase()) == (["a", "b_c"], "3%", "axb", "aB")

# large numbers
s_ = 1 << 70
s_ -= 1
assert (s_ % 1000, s_.bit_length(), int("-0x1f", 16), 7 .__rsub__(9), pow(3, -1, 7)) == (423, 70, -31, 2, 5)

# floats
import math
s_ = math.inf
assert (s_ > 1e308, math.isclose(0.1 + 0.2, 0.3), (0.5).as_integer_ratio()) == (True, True, (1, 2))

# slice objects
s_ = slice(None, None, -2)
assert ([1, 2, 3][s_], s_.indices(4), range(10)[2:8:3]) == ([3, 1], (3, -1, -2), range(2, 8, 3))

# typed tuple
from typing import NamedTuple
class Kind_(NamedTuple):
    one: int
    two: int = 2
    def own(self):
        return self.one + self.two
s_ = Kind_(1)
assert (s_.own(), s_[1], [*s_], s_ == (1, 2), s_.index(2)) == (3, 2, [1, 2], True, 1)

# list that compares itself
s_ = [1, [2, 3]]
assert (s_ < [1, [2, 4]], s_ == [1, (2, 3)], (1, 2) < (1, 2, 0), "a" * 0 == "") == (True, False, True, True)

# deque that is indexed
from collections import deque
s_ = deque([1, 2, 3])
s_[1] = 5
s_.insert(0, 9)
s_.reverse()
del s_[0]
assert ([*s_], s_.index(5), s_.count(1), 9 in s_, s_ == deque([5, 1, 9])) == ([5, 1, 9], 0, 1, True, True)

# default dict of a class
from collections import defaultdict
class Kind_(defaultdict):
    pass
s_ = Kind_(list)
s_["a"].append(1)
assert (s_, s_.get("b"), "b" in s_, type(s_.copy()) is Kind_) == ({"a": [1]}, None, False, True)

# user dict
from collections import UserDict
class Kind_(UserDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value * 2)
s_ = Kind_(a=1)
s_.update(b=2)
assert (s_["a"], s_.data, "b" in s_, len(s_)) == (2, {"a": 2, "b": 4}, True, 2)
"""
