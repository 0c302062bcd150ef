"""Formats calls and trials as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fuzzing.cases import Dtype, Recipe, Tensor
from fuzzing.generate.docter import apis
from fuzzing.generate.docter.calls import Call
from fuzzing.generate.docter.trials import Trial

#: From which share on an API counts as understood (the bar of the work on migration).
UNDERSTOOD = 0.7
_ACCEPTED = ("accepted", "unusable")
_FINDINGS = ("crashed", "hung", "out of memory")


def format_call(drawn: Call) -> str:
    """A call on one line: torch.gather(input=float32[5, 4], dim=0, index=int64[5, 4])."""
    parts = {"init": "", "call": ""}
    for place in parts:
        given = {item.name: drawn.arguments[item.name] for item in drawn.record.parameters
                 if item.place == place and item.name in drawn.arguments}  # fmt: skip
        parts[place] = ", ".join(f"{name}={_format_value(value)}" for name, value in given.items())
    made = f"({parts['init']})" if drawn.record.kind == "class" else ""
    return f"{drawn.record.api}{made}({parts['call']})"


def _format_value(value: Any) -> str:
    if isinstance(value, (Recipe, Tensor)):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, Dtype):
        return f"torch.{value.name}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_format_value, value))}]"
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def format_acceptance(trials: Iterable[Trial]) -> Iterator[str]:
    """Each API's share of accepted draws, with the first refusal; the namespaces'; the findings."""
    by_api = _by_api(trials)
    found_shares = {api: _acceptance_rate(found) for api, found in by_api.items()}
    width = max(map(len, found_shares), default=0)
    for api, found in by_api.items():
        refused = next((trial.detail or trial.ending for trial in found if trial.ending not in _ACCEPTED), "")
        yield f"{api:{width}} {found_shares[api]:6.0%}  {' '.join(refused.split())[:100]}".rstrip()
    yield ""
    yield from _summary(found_shares)
    endings = Counter(trial.ending for found in by_api.values() for trial in found)
    yield "draws: " + ", ".join(f"{count} {ending}" for ending, count in endings.most_common())
    for found in by_api.values():
        for trial in found:
            if trial.ending in _FINDINGS:
                yield f"finding: {trial.name} {trial.ending}: {' '.join(trial.detail.split())}"


def acceptance_rates(trials: Iterable[Trial]) -> Mapping[str, float]:
    """For each API the share of its trials that the library accepted, usable as a case or not."""
    return {api: _acceptance_rate(found) for api, found in _by_api(trials).items()}


def _by_api(trials: Iterable[Trial]) -> Mapping[str, list[Trial]]:
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.api, []).append(trial)
    return found


def _acceptance_rate(trials: list[Trial]) -> float:
    return sum(trial.ending in _ACCEPTED for trial in trials) / len(trials)


def _summary(acceptance_rates: Mapping[str, float]) -> Iterator[str]:
    for namespace in (*apis.NAMESPACES, "all"):
        found = [
            value for api, value in acceptance_rates.items() if namespace in (apis.split_api(api)[0], "all")
        ]
        if found:
            understood = sum(value >= UNDERSTOOD for value in found)
            mean = sum(found) / len(found)
            counted = f"{understood} with {UNDERSTOOD:.0%} or more"
            yield f"{namespace:20} {len(found):5} APIs, {mean:4.0%} accepted on average, {counted}"
