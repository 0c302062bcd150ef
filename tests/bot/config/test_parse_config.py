"""Configurations that are right, wrong in many places, or hostile."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.config import InvalidConfigError, RepositoryConfig, names, parse_config
from bot.config.document import MAX_ALIASES, MAX_BYTES, MAX_DEPTH
from bot.errors import ConfigError
from fuzzing import backends

SMALLEST = b"version: 1\nbackend: openvino\n"

FULL = b"""\
version: 1
backend: onnxruntime
sources: [onnx-node-tests]
strategy: opera
budget: 90s
branches:
  - main
  - 'releases/*'
device: CPU
profile: default
repeats: 5
limits: {import: 3m, compile: 1.5h, memory: 512MiB}
toolchain:
  provisioner: release
  package: onnxruntime-gpu
  pin: ci/pins.txt
  extra: [numpy==1.26.4]
reports:
  mode: held
  issues_per_day: 0
"""


def mistakes(text: bytes) -> list[tuple[int, int, str]]:
    with pytest.raises(InvalidConfigError) as caught:
        parse_config(text)
    return [(problem.line, problem.column, problem.key) for problem in caught.value.problems]


def message(text: bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    return str(caught.value)


def test_the_smallest_file_gets_the_documented_defaults() -> None:
    config = parse_config(SMALLEST)
    assert (config.version, config.backend, config.strategy) == (1, "openvino", None)
    assert config.sources == list(names.default_sources("onnx"))
    assert config.sources[0] == "onnx-node-tests"
    assert (config.budget, config.branches, config.device, config.profile) == (300.0, None, "CPU", "default")
    assert (config.repeats, config.limits.overrides()) == (3, {})
    assert (config.toolchain.provisioner, config.toolchain.package) == (["release"], None)
    assert (config.toolchain.pin, config.toolchain.extra) == ("requirements.txt", [])
    assert (config.reports.mode, config.reports.issues_per_day) == ("dry-run", 2)


def test_every_key_is_read() -> None:
    config = parse_config(FULL)
    assert (config.budget, config.strategy) == (90.0, "opera")
    assert config.branches == ["main", "releases/*"]
    assert config.limits.overrides() == {"import_s": 180.0, "compile_s": 5400.0, "memory_bytes": 512 << 20}
    assert config.toolchain.package == "onnxruntime-gpu"
    assert config.toolchain.extra == ["numpy==1.26.4"]
    assert (config.reports.mode, config.reports.issues_per_day) == ("held", 0)


@pytest.mark.parametrize("text", [SMALLEST, FULL])
def test_json_round_trip(text: bytes) -> None:
    config = parse_config(text)
    assert RepositoryConfig.from_json(config.to_json()) == config


def test_a_strategy_that_nobody_registered() -> None:
    text = message(SMALLEST + b"strategy: oprea\n")
    assert "line 3, column 11: strategy 'oprea' is not a strategy; did you mean 'opera'? There are: " in text
    assert "source-order" in text


def test_all_mistakes_are_told_in_the_order_of_the_file() -> None:
    text = (
        b"version: 2\n"
        b"bakend: openvino\n"
        b"budget: 5 parsecs\n"
        b"budget: 5m\n"
        b"toolchain:\n"
        b"  pi: requirements.txt\n"
        b"  extra: [numpy, 'x @ https://example.org/x.whl']\n"
        b"limits: 3\n"
    )
    assert mistakes(text) == [
        (1, 1, "backend"),
        (1, 10, "version"),
        (2, 1, "bakend"),
        (3, 9, "budget"),
        (4, 1, "budget"),
        (6, 3, "toolchain.pi"),
        (7, 11, "toolchain.extra[0]"),
        (7, 18, "toolchain.extra[1]"),
        (8, 9, "limits"),
    ]


def test_the_error_carries_the_place_of_the_first_mistake() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(SMALLEST + b"repeats: many\nrepeat: 3\n", name="here.yml")
    assert (caught.value.line, caught.value.column, caught.value.key) == (3, 10, "repeats")
    assert str(caught.value).splitlines()[0] == "here.yml has 2 mistakes:"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (b"buget: 5m", "did you mean 'budget'?"),
        (b"limits: {memroy: 4GiB}", "did you mean 'memory'?"),
        (b"limits: {import_: 1m}", "did you mean 'import'?"),
        (b"toolchain: {pinn: a.txt}", "did you mean 'pin'?"),
        (b"sources: [onnx-node-test]", "did you mean 'onnx-node-tests'?"),
        (b"toolchain: {provisioner: releese}", "did you mean 'release'?"),
        (b"budget: 5", "budget is not a duration; write a number and s, m or h"),
        (b"budget: 0s", "greater than 0"),
        (b"budget: 25h", "less than or equal to 86400"),
        (b"limits: {memory: 4GB}", "B, KiB, MiB or GiB"),
        (b"reports: {mode: loud}", "'dry-run', 'held' or 'auto'; it is 'loud'"),
        (b"schedules: {nightly: {cron: 99 3 * * *}}", "schedules.nightly.cron is not a cron line"),
        (b"schedules: {nightly: {cron: 0 3 * * *, budgt: 1h}}", "did you mean 'budget'?"),
        (b"reports: {issues_per_day: 1.5}", "must be a whole number; it is '1.5'"),
        (b"repeats: true", "must be a whole number; it is true"),
        (b"repeats: '3'", "must be a whole number; it is '3'"),
        (b"device:", "must be text; it is empty"),
        (b"branches: main", "must be a list; it is 'main'"),
        (b"sources: []", "sources must be given"),
        (b"frontend: onxx", "did you mean 'onnx'?"),
        (b"device: CPUU", "did you mean 'CPU'?"),
        (b"profile: defualt", "did you mean 'default'?"),
        (b"options: {nothing: 1}", "nothing is not an option of openvino"),
        (b"options: {1: 2, 1: 3}", "is given twice"),
        (b"options: fast", "must be a mapping of keys to values; it is 'fast'"),
        (b"toolchain: {pin: ../../etc/passwd}", "path of a file in this repository"),
        (b"toolchain: {pin: /etc/passwd}", "path of a file in this repository"),
        (b"toolchain: {package: 'openvino>=1'}", "without a version"),
        (b"toolchain: {extra: ['numpy==1.*']}", "pinned exactly"),
        (b"toolchain: {extra: ['-r x']}", "is not a requirement"),
        (b"device: !!python/name:os.system x", "has the tag"),
    ],
)
def test_messages_say_what_is_allowed(line: bytes, hint: str) -> None:
    assert hint in message(SMALLEST + line)


def test_a_misspelt_backend_is_recognised() -> None:
    text = message(b"version: 1\nbackend: openvivo\n")
    assert "line 2, column 10: backend 'openvivo' is not a backend; did you mean 'openvino'?" in text


def test_a_repository_cannot_ask_for_an_interpreter_of_the_machine_or_a_judge() -> None:
    assert "; there are: artifact, index, overlay, release, source" in message(
        SMALLEST + b"toolchain: {provisioner: existing}"
    )
    assert "is not a backend" in message(b"version: 1\nbackend: onnx_reference\n")
    assert "is not a backend" in message(b"version: 1\nbackend: ./evil.py\n")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (b"", "is empty"),
        (b"# nothing\n", "is empty"),
        (b"- version\n", "must be a mapping"),
        (b"version: 1\n\tbackend: openvino\n", "line 2, column 1: the file is indented with a tab"),
        (b"version: 1\nbackend: \xff\n", "line 2, column 10: the file is not UTF-8"),
        (SMALLEST + b"#" * MAX_BYTES, f"at most {MAX_BYTES}"),
        (SMALLEST + b"---\n" + SMALLEST, "line 3, column 1: the file holds more than one document"),
        (b"%YAML 1.1\n---\n" + SMALLEST, "line 1, column 1: the file has a YAML directive"),
        (SMALLEST + b"device: " + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, f"deeper than {MAX_DEPTH}"),
        (SMALLEST + b"device: [" * 5000, f"deeper than {MAX_DEPTH}"),
        (SMALLEST + b"device: *nobody\n", "undefined alias"),
        (SMALLEST + b"branches: &a [*a]\n", "an alias of itself"),
        (
            SMALLEST + b"branches: [&a x" + b", *a" * (MAX_ALIASES + 1) + b"]\n",
            f"more than {MAX_ALIASES} aliases",
        ),
        (SMALLEST + b"? [a, b]\n: c\n", "a key that is no plain word"),
        (SMALLEST + b"device: 'open\n", "is not valid YAML"),
        (SMALLEST + b"device: \x00\n", "line 3, column 9: the file has a character"),
        (SMALLEST + b'device: "\\U00110000"\n', "is not valid YAML"),
    ],
)
def test_unreadable_files_say_why_and_where(text: bytes, hint: str) -> None:
    assert hint in message(text)


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 4)) for n in range(1, 5)]
    assert "values, or an alias of itself" in message(b"\n".join(lines))


def test_a_few_aliases_are_fine() -> None:
    text = SMALLEST + b"limits: {convert: &t 1m, compile: *t}\n"
    assert parse_config(text).limits.overrides() == {"convert_s": 60.0, "compile_s": 60.0}


def fuzzed() -> st.SearchStrategy[bytes]:
    """Bytes, text in YAML's alphabet, and a good file with a piece of either put somewhere."""
    alphabet = st.sampled_from(list(" \n:-[]{},&*!|>'\"%@`#?<=~.0123456789abexyz\\U\t\u2028\ufeff"))
    pieces = st.one_of(st.binary(max_size=80), st.text(alphabet, max_size=80).map(str.encode))
    cuts = st.tuples(st.integers(0, len(FULL)), st.integers(0, len(FULL)), pieces)
    spliced = cuts.map(lambda cut: FULL[: min(cut[:2])] + cut[2] + FULL[max(cut[:2]) :])
    return st.one_of(pieces, spliced)


@settings(max_examples=300, deadline=None)
@given(fuzzed())
@example(b"%YAML 1.\n")
@example(b"!<tag:yaml.org,2002:int> x: 1")
@example(b"version: !!int x")
@example(b"version: 0x1\nbackend: 0o7_")
@example(b"version: 1" + b"0" * 5000)
@example(b"version: !!timestamp 2001-99-99")
@example(b"<<: {version: 1}")
@example(b"- |9\n x")
def test_any_bytes_give_a_configuration_or_a_config_error(text: bytes) -> None:
    try:
        config = parse_config(text)
    except InvalidConfigError as error:
        problems = error.problems
    else:
        assert RepositoryConfig.from_json(config.to_json()) == config
        return
    assert problems
    assert all(problem.message for problem in problems)
    places = [(problem.line, problem.column) for problem in problems]
    assert all(first <= second for first, second in pairwise(places))


def test_options_are_checked_against_the_backend_where_they_stand() -> None:
    text = b"version: 1\nbackend: onnxruntime\noptions:\n  optimisation: basic\n  optimization: basci\n"
    assert mistakes(text) == [(4, 3, "options.optimisation"), (5, 17, "options.optimization")]
    assert "did you mean 'optimization'?" in message(text)
    assert "cannot be 'basci'; did you mean 'basic'?" in message(text)


def test_an_option_at_its_default_is_no_configuration_of_its_own() -> None:
    first = backends.get("onnxruntime").options["optimization"][0]
    plain = parse_config(b"version: 1\nbackend: onnxruntime\n")
    assert (
        parse_config(f"version: 1\nbackend: onnxruntime\noptions: {{optimization: {first}}}".encode())
        == plain
    )
    set_ = parse_config(b"version: 1\nbackend: onnxruntime\noptions: {optimization: basic}")
    assert set_.options == {"optimization": "basic"}
    assert RepositoryConfig.from_json(set_.to_json()) == set_


def test_device_and_frontend_are_those_of_the_backend() -> None:
    assert "did you mean" not in message(b"version: 1\nbackend: onnxruntime\ndevice: GPU9\n")
    assert "'GPU' is not a device of onnxruntime" in message(
        b"version: 1\nbackend: onnxruntime\ndevice: GPU\n"
    )
    assert parse_config(b"version: 1\nbackend: openvino\ndevice: GPU\nfrontend: onnx\n").device == "GPU"


def test_one_mistake_is_told_once_though_defaults_hang_on_it() -> None:
    assert mistakes(b"version: 1\nbackend: openvivo\n") == [(2, 10, "backend")]
