"""docs/configuration.md says what the model says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.config import InvalidConfigError, names, parse_config
from bot.config.reference import render_table

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")
SMALLEST = "version: 1\nbackend: openvino\n"


def test_the_table_is_the_model() -> None:
    start = PAGE.index("| key |")
    assert PAGE[start : PAGE.index("\n\n<!-- end of table -->")] == render_table()


def test_every_example_file_is_valid() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) == 4
    for example in examples:
        parse_config(example.encode())


@pytest.mark.parametrize("row", render_table().splitlines()[2:])
def test_every_example_of_the_table_is_valid(row: str) -> None:
    key, *_, example = re.findall(r"`([^`]+)`", row)
    if "." in key:
        *sections, _ = key.split(".")
        lines = [f"{'  ' * depth}{name}:" for depth, name in enumerate(sections)]
        if key.startswith("schedules.") and not key.endswith(".cron"):
            example = f"{{{example}, cron: 0 3 * * *}}"
        text = "\n".join([*lines, f"{'  ' * len(sections)}{example}"])
        parse_config(f"{SMALLEST}{text}\n".replace("NAME", "nightly").encode())
    elif key not in ("version", "backend"):
        parse_config(f"{SMALLEST}{example}\n".encode())
    else:
        assert example in SMALLEST


def test_the_mistakes_are_shown_as_they_are_told() -> None:
    shown = re.search(r"^```\n(\.github/assay\.yml has .*?)\n```", PAGE, re.DOTALL | re.MULTILINE)
    assert shown
    with pytest.raises(InvalidConfigError) as caught:
        parse_config(b"version: 1\nbackend: openvivo\nbudgt: 5m\n")
    # The page need not change with each new backend (law 4), so it names the first and leaves out the rest.
    reported = str(caught.value).replace(
        f"There are: {', '.join(names.backends())}", "There are: onnxruntime, openvino, …"
    )
    assert reported == shown[1]
