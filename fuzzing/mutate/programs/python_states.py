"""Objects of Python: statements, and an assertion that holds after them, in every Python from 3.10.

Each tests a rule of the language or of its library. The assertion may change the objects, so it holds once.
"""

from __future__ import annotations

from fuzzing.mutate.programs import library_states

_TEXT = """
# alias of a list
s_ = t_ = [3, 1, 2]
s_ += [5]
assert (t_.pop(1), s_, s_ is t_) == (1, [3, 2, 5], True)

# slices of a list
s_ = [1, 2, 3, 4, 5]
s_[1:3] = [9]
del s_[::2]
s_ *= 2
s_.insert(-1, 7)
assert (s_, s_[::-1], s_.index(5)) == ([9, 5, 9, 7, 5], [5, 7, 9, 5, 9], 1)

# order of a dict
s_ = {3: 1, 1: 2, 2: 3}
s_[3] = s_.pop(1)
s_[1] = 9
assert [*s_.items()] == [(3, 2), (2, 3), (1, 9)]

# views of a dict
s_ = {"a": 1}
t_ = s_.keys()
s_["b"] = 2
assert [*t_] == ["a", "b"] and t_ == s_.keys()

# ordered dict
from collections import OrderedDict
s_ = OrderedDict(a=1, b=2, c=3)
s_.move_to_end("a")
assert (next(iter(s_)), s_.popitem(last=False), len(s_)) == ("b", ("b", 2), 2)

# default dict
from collections import defaultdict
s_ = defaultdict(lambda: 4)
s_["a"] += 1
assert s_["b"] + s_["a"] == 9 and [*s_] == ["a", "b"]

# counter
from collections import Counter
s_ = Counter("abca")
s_.update("ab")
assert (s_["z"], s_.most_common(1), len(s_)) == (0, [("a", 3)], 3)

# deque
from collections import deque
s_ = deque([1, 2, 3], maxlen=3)
s_.append(4)
s_.rotate(1)
s_.appendleft(9)
assert [*s_] == [9, 4, 2] and s_.maxlen == 3

# set
s_ = {1, 2, 3}
s_ ^= {3, 4}
s_.discard(9)
assert s_ == {1, 2, 4} and s_ > {1, 4} and s_.isdisjoint([3])

# iterator
s_ = iter([1, 2, 3, 4])
next(s_)
assert (2 in s_, [*s_]) == (True, [3, 4])

# enumeration
s_ = enumerate("abc", 3)
next(s_)
assert [*s_] == [(4, "b"), (5, "c")]

# mapped iterator
s_ = map(lambda each: each * 2, [1, 2, 3])
next(s_)
assert [*s_] == [4, 6] and [*s_] == []

# accumulated
from itertools import accumulate
s_ = accumulate([1, 2, 3], initial=5)
next(s_)
assert [*s_] == [6, 8, 11]

# teed
from itertools import tee
s_, t_ = tee(iter([1, 2, 3]))
next(s_)
assert ([*s_], [*t_]) == ([2, 3], [1, 2, 3])

# generator
def g_(last):
    for each in range(last):
        yield each
s_ = g_(3)
next(s_)
assert [*s_] == [1, 2]

# generator that is sent to
def g_():
    got = yield 1
    while True:
        got = yield got * 2
s_ = g_()
next(s_)
assert (s_.send(3), s_.send(5)) == (6, 10)

# generator that is closed
t_ = []
def g_():
    try:
        yield 1
    finally:
        t_.append(3)
s_ = g_()
next(s_)
assert (s_.close(), t_) == (None, [3])

# generator that is thrown into
def g_():
    try:
        yield 1
    except ValueError as error:
        yield error.args[0]
s_ = g_()
next(s_)
assert s_.throw(ValueError(7)) == 7

# delegating generator
def h_():
    yield 1
    return 5
def g_():
    yield (yield from h_())
s_ = g_()
next(s_)
assert [*s_] == [5]

# late closures
s_ = [lambda: each for each in range(3)]
assert [each() for each in s_] == [2, 2, 2]

# default values
def g_(kept=[]):
    kept.append(1)
    return len(kept)
g_()
assert (g_(), g_(), g_.__defaults__[0]) == (2, 3, [1, 1, 1])

# shared cell
s_ = 1
def g_():
    nonlocal s_
    s_ += 1
    return s_
g_()
assert (g_(), s_) == (3, 3)

# two functions of a cell
def h_():
    kept = 0
    def add():
        nonlocal kept
        kept += 1
    return add, lambda: kept
s_, t_ = h_()
s_()
assert (s_(), t_()) == (None, 2)

# function attribute
def g_():
    return g_.kept
g_.kept = 4
g_.kept += 1
assert g_() == 5

# partial
from functools import partial
s_ = partial(lambda *given, last: (given, last), 1, last=2)
assert (s_(3), s_(last=4), s_.args) == (((1, 3), 2), ((1,), 4), (1,))

# instance
class Kind_:
    kept = 1
s_ = Kind_()
s_.kept += 1
s_.own = s_
assert (Kind_.kept, s_.own.kept, sorted(vars(s_))) == (1, 2, ["kept", "own"])

# class attribute
class Kind_:
    made = 0
    def __init__(self):
        type(self).made += 1
Kind_()
assert (Kind_().made, Kind_.made) == (2, 2)

# deleted attribute
class Kind_:
    kept = 1
s_ = Kind_()
s_.kept = 2
del s_.kept
assert s_.kept == 1 and not vars(s_)

# missing attribute
class Kind_:
    def __getattr__(self, name):
        return len(name)
s_ = Kind_()
s_.own = 9
assert (s_.own, s_.other, getattr(s_, "third", 0)) == (9, 5, 5)

# descriptor
class Twice_:
    def __get__(self, owner, kind):
        return owner.__dict__.get("kept", 1)
    def __set__(self, owner, value):
        owner.__dict__["kept"] = value * 2
class Kind_:
    own = Twice_()
s_ = Kind_()
t_ = s_.own
s_.own = 5
assert (t_, s_.own) == (1, 10)

# operators of a class
class Kind_:
    def __init__(self, kept):
        self.kept = kept
    def __radd__(self, other):
        return Kind_(self.kept + other * 10)
    def __iadd__(self, other):
        self.kept -= other
        return self
    def __eq__(self, other):
        return self.kept == other.kept
    def __hash__(self):
        return hash(self.kept)
    def __bool__(self):
        return self.kept > 2
s_ = Kind_(3)
s_ += 1
t_ = 1 + s_
assert (s_.kept, t_.kept, bool(s_), len({s_, Kind_(2), t_})) == (2, 12, False, 2)

# length of a class
class Kind_:
    def __len__(self):
        return 0
    def __getitem__(self, key):
        return key
s_ = Kind_()
assert (not s_, s_[1, 2:], s_[...]) == (True, (1, slice(2, None)), ...)

# list of a class
class Kind_(list):
    kept = 1
    def append(self, item):
        super().append(item + 1)
s_ = Kind_([1])
s_.append(2)
assert (s_, len(s_), type(s_) is Kind_) == ([1, 3], 2, True)

# dict of a class
class Kind_(dict):
    def __missing__(self, key):
        return key * 2
s_ = Kind_(a=1)
s_["b"] = 2
assert (s_["c"], s_.get("c"), len(s_), [*s_]) == ("cc", None, 2, ["a", "b"])

# dataclass
from dataclasses import dataclass, field, replace
@dataclass(order=True)
class Kind_:
    one: int
    two: list = field(default_factory=list, compare=False)
s_ = Kind_(1)
s_.two.append(3)
assert (s_ < replace(s_, one=2), s_.two, Kind_(4).two) == (True, [3], [])

# named tuple
from collections import namedtuple
Kind_ = namedtuple("Kind_", "one two", defaults=[2])
s_ = Kind_(1)
assert (s_, s_._replace(two=3).two, s_._asdict()) == ((1, 2), 3, {"one": 1, "two": 2})

# enumeration class
from enum import IntEnum
class Kind_(IntEnum):
    ONE = 1
    FIVE = 5
s_ = Kind_.FIVE
assert (s_ + Kind_["ONE"], Kind_(5) is s_, len(Kind_)) == (6, True, 2)

# caught exception
try:
    raise ValueError(3)
except ValueError as error:
    s_ = error
assert (type(s_), s_.args) == (ValueError, (3,))

# cause of an exception
try:
    try:
        raise ValueError(3)
    except ValueError as error:
        raise KeyError(4) from error
except KeyError as error:
    s_ = error
assert (s_.args, s_.__cause__.args) == ((4,), (3,))

# return in finally
def g_():
    for each in range(3):
        try:
            return each
        finally:
            continue
    return 7
s_ = g_()
assert s_ == 7

# manager that swallows
from contextlib import contextmanager
s_ = []
@contextmanager
def g_():
    try:
        yield 5
    except KeyError:
        s_.append(2)
    finally:
        s_.append(3)
with g_() as t_:
    s_.append(t_)
    {}[t_]
assert s_ == [5, 2, 3]

# stack of managers
from contextlib import ExitStack
s_ = []
with ExitStack() as t_:
    t_.callback(s_.append, 1)
    t_.callback(s_.append, 2)
assert s_ == [2, 1]

# copies
from copy import copy, deepcopy
s_ = [1, [2]]
t_, u_ = copy(s_), deepcopy(s_)
s_[1].append(3)
assert (t_, u_) == ([1, [2, 3]], [1, [2]])

# text
s_ = f"{5:>3}|{[1]!r:*^5}" + "%d-%05.2f" % (3, 1.5)
assert s_.split("-") == ["  5|*[1]*3", "01.50"]

# numbers
s_ = -7
s_ //= 2
assert (s_, -7 % 3, divmod(7, -3), round(2.5), s_ << 2, ~s_) == (-4, 2, (-3, -2), 2, -16, 3)

# set of a class
class Kind_(set):
    pass
s_ = Kind_([1])
s_ |= {2}
assert s_ == {1, 2} and type(s_) is Kind_

# unpacked dict of a class
class Kind_(dict):
    def __getitem__(self, key):
        return 7
s_ = Kind_(a=1)
assert {**s_} == {"a": 1} and s_["a"] == 7

# bounded deque
from collections import deque
s_ = deque([1, 2, 3], maxlen=3)
s_.extend([4, 5])
s_.extendleft([6])
s_.appendleft(7)
assert ([*s_], s_.copy().maxlen, len(s_ * 2)) == ([7, 6, 3], 3, 3)

# set of equal objects
class Kind_:
    def __init__(self, kept):
        self.kept = kept
    def __eq__(self, other):
        return self.kept == other.kept
    def __hash__(self):
        return hash(self.kept)
s_ = {Kind_(1), Kind_(1), Kind_(2)}
assert len(s_) == 2 and Kind_(2) in s_

# dict of equal objects
class Kind_:
    def __init__(self, kept):
        self.kept = kept
    def __eq__(self, other):
        return self.kept == other.kept
    def __hash__(self):
        return hash(self.kept)
s_ = {Kind_(1): 5}
s_[Kind_(1)] = 7
assert len(s_) == 1 and Kind_(1) in s_ and [Kind_(2), Kind_(1)].index(Kind_(1)) == 1

# called metaclass
class Meta_(type):
    def __call__(cls, *given):
        made = super().__call__(*given)
        made.kept += 1
        return made
class Kind_(metaclass=Meta_):
    def __init__(self, kept):
        self.kept = kept
s_ = Kind_(3)
assert s_.kept == 4

# attributes of a metaclass
class Meta_(type):
    def __len__(cls):
        return 4
    def __getattr__(cls, name):
        return len(name)
    def __contains__(cls, item):
        return item == 3
class Kind_(metaclass=Meta_):
    pass
assert (len(Kind_), Kind_.other, 3 in Kind_, 4 in Kind_) == (4, 5, True, False)

# inherited class attribute
class Kind_:
    made = 0
    def __init__(self):
        type(self).made += 1
        self.own = self.made
class Other_(Kind_):
    pass
s_ = Other_()
assert (Other_().own, s_.own, Kind_.made) == (2, 1, 0)

# class method that writes
class Kind_:
    made = 0
    @classmethod
    def add(cls):
        cls.made += 1
        return cls.made
class Other_(Kind_):
    pass
s_ = Kind_.add()
assert (s_, Other_.add(), Kind_.add(), Other_.made) == (1, 2, 2, 2)

# cooperative methods
class Base_:
    def own(self):
        return 1
class Left_(Base_):
    def own(self):
        return super().own() + 10
class Right_(Base_):
    def own(self):
        return super().own() + 100
class Kind_(Left_, Right_):
    pass
s_ = Kind_()
t_ = s_.own
s_.own = lambda: 5
assert (t_(), s_.own(), Kind_.own(s_)) == (111, 5, 111)

# single instance
class Kind_:
    made = None
    def __new__(cls):
        if cls.made is None:
            cls.made = super().__new__(cls)
        return cls.made
s_ = Kind_()
s_.kept = 3
assert Kind_() is s_ and Kind_().kept == 3

# reflected operators
class Left_:
    def __add__(self, other):
        return NotImplemented
    def __lt__(self, other):
        return NotImplemented
class Right_:
    def __radd__(self, other):
        return 5
    def __gt__(self, other):
        return True
s_ = Left_()
assert (s_ + Right_(), s_ < Right_()) == (5, True)

# number of a class
class Kind_(int):
    def __add__(self, other):
        return Kind_(int(self) + int(other) + 1)
s_ = Kind_(3)
assert (s_ + 4, s_ * 2, type(s_ + 1) is Kind_) == (8, 6, True)

# property
class Kind_:
    @property
    def own(self):
        return self.kept
    @own.setter
    def own(self, value):
        self.kept = value + 1
    @own.deleter
    def own(self):
        self.kept = 0
s_ = Kind_()
s_.own = 3
t_ = s_.own
del s_.own
assert (t_, s_.own) == (4, 0)

# cached property
from functools import cached_property
class Kind_:
    turns = 0
    @cached_property
    def own(self):
        self.turns += 1
        return self.turns
s_ = Kind_()
s_.own
assert (s_.own, s_.turns) == (1, 1)

# context of an exception
try:
    try:
        {}["a"]
    except KeyError:
        [][1]
except IndexError as error:
    s_ = error
assert (type(s_.__context__), str(s_)) == (KeyError, "list index out of range")

# value of a generator
def g_():
    yield 1
    return 7
s_ = g_()
next(s_)
try:
    next(s_)
except StopIteration as error:
    t_ = error.value
assert (t_, next(s_, 9)) == (7, 9)
"""

#: By name; a step's number ends each name that ends with an underscore.
STATES = {
    block.partition("\n")[0].removeprefix("# "): block.partition("\n")[2]
    for text in (_TEXT, library_states.TEXT)
    for block in text.strip().split("\n\n")
}
