"""The ten most similar APIs of each API, by signature or by documentation.

Similarity is max(signature, documentation), as in DeepREL. Both are cosines of TF-IDF vectors, of character
trigrams of the signature and of words of the text; DeepREL uses a neural model's sentence embeddings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fuzzing.generate.deeprel.api_inventory import Api

#: Candidates for each API (DeepREL's top_k).
CANDIDATES = 10
#: Terms that fewer texts have relate nothing; nor do those that most have (their weight is near 0).
_MIN_TEXTS = 2
_WORD = re.compile(r"[a-z]{3,}|[a-z]+\d+|\d+d")
#: Rows of the similarity matrix computed at a time: what is held is this many times all APIs.
_ROWS = 256

Matrix = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Candidate:
    """A similar API, and its similarity (0 to 1)."""

    api: Api
    similarity: float


def find_candidates(
    sources: Sequence[Api], apis: Sequence[Api], count: int = CANDIDATES
) -> dict[str, tuple[Candidate, ...]]:
    """For each source the `count` most similar others of `apis`, the most similar first.

    Classes are compared with classes, functions and methods with functions and methods, with term weights of
    their own, since all texts of classes share a form. Ties are in the order of names.
    """
    found: dict[str, tuple[Candidate, ...]] = {}
    for classes in (False, True):
        sort = (api for api in apis if (api.kind == "class") == classes)
        found.update(_rank_same_kind(sources, tuple(sorted(sort, key=lambda api: api.name)), count))
    return found


def _rank_same_kind(
    sources: Sequence[Api], apis: tuple[Api, ...], count: int
) -> Iterator[tuple[str, tuple[Candidate, ...]]]:
    place = {api.name: index for index, api in enumerate(apis)}
    rows = np.array([place[api.name] for api in sources if api.name in place], dtype=np.intp)
    if not rows.size:
        return
    spaces = _tf_idf_matrices(apis)
    for some in np.array_split(rows, -(-rows.size // _ROWS)):
        alike = np.maximum(*(space[some] @ space.T for space in spaces))
        alike[np.arange(some.size), some] = -1  # nothing is its own candidate
        # Rounded: a matrix product may add in another order on another machine.
        alike = np.round(alike, 4)
        best = np.argsort(-alike, axis=1, kind="stable")[:, : min(count, len(apis) - 1)]
        for row, own in enumerate(some):
            yield (
                apis[own].name,
                tuple(Candidate(apis[index], round(float(alike[row, index]), 4)) for index in best[row]),
            )


@lru_cache(maxsize=2)  # both sorts of one library, asked for again in each round
def _tf_idf_matrices(apis: tuple[Api, ...]) -> tuple[Matrix, Matrix]:
    return tf_idf([_trigrams(api) for api in apis]), tf_idf([_words(api) for api in apis])


def tf_idf(texts: Sequence[Counter[str]]) -> Matrix:
    """Texts as rows of unit length, float32 [texts, terms]; a text without a known term is a row of zeros.

    Weights are (1 + log tf)·log(n / df).
    """
    spread = Counter(term for text in texts for term in text)
    terms = {
        term: index for index, term in enumerate(sorted(t for t, n in spread.items() if n >= _MIN_TEXTS))
    }
    matrix = np.zeros((len(texts), len(terms)), np.float32)
    for row, text in enumerate(texts):
        for term, count in text.items():
            if term in terms:
                matrix[row, terms[term]] = (1 + np.log(count)) * np.log(len(texts) / spread[term])
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    normal: Matrix = matrix / np.maximum(lengths, np.finfo(np.float32).tiny)
    return normal


def _trigrams(api: Api) -> Counter[str]:
    """Of the API's own name and of its parameters' names; `relu` is in `relu_` and in `relu6`."""
    name = api.name.rsplit(".", 1)[-1].lower()
    text = f"^{name}$"
    found = Counter(text[at : at + 3] for at in range(max(1, len(text) - 2)))
    parameters = {p.name for signature in api.signatures for p in signature.parameters}
    found.update(f"({name}" for name in sorted(parameters - {"self", "input"}))
    return found


def _words(api: Api) -> Counter[str]:
    """The words of the text without examples and their numbers, links and markup."""
    text = api.text.partition("Example")[0].lower()
    return Counter(_WORD.findall(re.sub(r"https?://\S+|[`*:\\_]", " ", text)))
