"""Rules of ONNX about operators on sequences: recurrent ones, attention, n-grams.

The operators' pages in the ONNX reference (https://onnx.ai/onnx/operators/) have them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from fuzzing.graph.operands import Operands


def recurrent(gates: int) -> Callable[[Operands], bool]:
    """Weights, recurrence and bias agree with `hidden_size`, which runtimes require, and the input.
    Activations are as many as an RNN, GRU or LSTM has, of one, three or four gates, in each direction.
    """
    functions = {1: 1, 3: 2, 4: 3}[gates]

    def rule(given: Operands) -> bool:
        hidden = given.get("hidden_size")
        ways = 2 if given.get("direction", b"forward") in (b"bidirectional", "bidirectional") else 1
        if not isinstance(hidden, int) or hidden <= 0:
            return False
        if len(given.get("activations") or ()) not in (0, ways * functions):
            return False
        x, batch_first = given.shape(0), given.get("layout", 0)
        sizes = {
            1: None if x is None or len(x) != 3 else (ways, gates * hidden, x[2]),
            2: (ways, gates * hidden, hidden),
            3: (ways, 2 * gates * hidden),
            4: None if x is None or len(x) != 3 else (x[0 if batch_first else 1],),
        }
        return (x is None or len(x) == 3) and all(
            shape == want
            for at, want in sizes.items()
            if want is not None and (shape := given.shape(at)) is not None
        )

    return rule


def attention(given: Operands) -> bool:
    """Keys and values have one batch, as many heads and positions as each other, and queries' size.
    Past ones come together.
    """
    if bool(given.dtype(4)) != bool(given.dtype(5)):
        return False
    shapes = [given.shape(at) for at in range(3)]
    if any(shape is None for shape in shapes):
        return True
    q, k, v = (shape or () for shape in shapes)
    heads = given.get("q_num_heads"), given.get("kv_num_heads")
    if {len(q), len(k), len(v)} not in ({3}, {4}) or len({q[0], k[0], v[0]}) != 1:
        return False
    if len(q) == 3:
        if None in heads or q[2] % heads[0] or k[2] % heads[1] or v[2] % heads[1] or heads[0] % heads[1]:
            return False
        fits = k[1] == v[1] and q[2] // heads[0] == k[2] // heads[1]
    else:
        agree = heads[0] in (None, q[1]) and heads[1] in (None, k[1])
        fits = agree and k[1:3] == v[1:3] and q[3] == k[3] and k[1] > 0 and q[1] % k[1] == 0
    mask, past = given.shape(3), given.shape(4)
    keys = k[-2] + (past[2] if past is not None and len(past) == 4 else 0)
    if not (fits and _cache_is_valid(given, keys)):
        return False
    if mask is None or not mask:
        return mask is None
    # Since opset 24 a shorter mask is padded. ONNX does not say whether that of one key is broadcast instead.
    shorter = 1 < mask[-1] < keys if given.opset >= 24 else mask[-1] == 1
    return (shorter or mask[-1] == keys) and mask[-2:-1] in ((), (1,), (q[-2],))


def _cache_is_valid(given: Operands, keys: int) -> bool:
    """An external cache has no past besides, and as many valid keys at most as there are and the mask has."""
    valid, mask = given.value(6), given.shape(3)
    if valid is None or not valid.size:
        return True
    most = min([keys, *(mask[-1:] if mask and mask[-1] != 1 else ())])
    return given.dtype(4) == "" and bool(((valid >= 0) & (valid <= most)).all())


def rotary_embedding(given: Operands) -> bool:
    """Cosines and sines are half as long as what is rotated, for each position or each of a batch's."""
    x, cosines, positions = given.shape(0), given.shape(1), given.shape(3)
    if x is None or cosines is None:
        return True
    heads = given.get("num_heads", 0)
    if heads < 0 or given.get("rotary_embedding_dim", 0) < 0:
        return False
    if len(x) not in (3, 4) or cosines != given.shape(2) or (len(x) == 3 and (heads <= 0 or x[2] % heads)):
        return False
    batch_and_length = (x[0], x[1] if len(x) == 3 else x[2])
    rotated = given.get("rotary_embedding_dim", 0) or (x[2] // heads if len(x) == 3 else x[3])
    if rotated % 2 or cosines[-1:] != (rotated // 2,):
        return False
    if positions is None:
        return cosines[:-1] == batch_and_length
    return len(cosines) == 2 and positions == batch_and_length


def reverse_sequence(given: Operands) -> bool:
    """Batch and time are the first two axes; each sequence of the batch is at most as long as the time."""
    batch, time = given.get("batch_axis", 1), given.get("time_axis", 0)
    x, lengths, values = given.shape(0), given.shape(1), given.value(1)
    if {batch, time} != {0, 1}:
        return False
    if x is None or lengths is None:
        return True
    within = values is None or bool(((values >= 0) & (values <= x[time])).all())
    return lengths == (x[batch],) and within


def scan(given: Operands) -> bool:
    """Before opset 9 all states and sequences have a batch axis, and sequences a further one."""
    if given.opset >= 9:
        return True
    sequences = given.get("num_scan_inputs", 0)
    ranks = [None if (shape := given.shape(at)) is None else len(shape) for at in range(1, given.inputs)]
    states = len(ranks) - sequences
    return all(rank is None or rank >= (1 if at < states else 2) for at, rank in enumerate(ranks))


def n_grams(given: Operands) -> bool:
    """The shortest n-gram has a word, the longest is in the pool, no number of words or start is negative.

    The pool holds whole n-grams, each once, and `ngram_indexes` is parallel to it.
    """
    low, high = given.get("min_gram_length", 0), given.get("max_gram_length", 0)
    counts = list(given.get("ngram_counts", ()))
    pool = list(given.get("pool_int64s") or given.get("pool_strings") or ())
    fits = 1 <= low <= high <= len(counts) and counts == sorted(counts) and counts[0] >= 0
    if not fits or given.get("max_skip_count", 0) < 0 or counts[-1] > len(pool):
        return False
    found: list[tuple[Any, ...]] = []
    for length, (begin, end) in enumerate(pairwise([*counts, len(pool)]), 1):
        if (end - begin) % length:
            return False
        found += [tuple(pool[at : at + length]) for at in range(begin, end, length)]
    return len(set(found)) == len(found) == len(given.get("ngram_indexes", ()))
