"""Having a program of the data plane work on cases and a compiler that is installed here."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bot.cli._options import Configured
from bot.runners import run_tool
from bot.toolchains import Ready, provision
from bot.toolchains.existing import existing_spec
from fuzzing.execute.shard import Shard

Event = dict[str, Any]


def installed(how: Configured, python: str) -> Ready:
    """The toolchain that holds the compiler; raises ProvisionError."""
    return provision(existing_spec(how.name, python), Path(), lambda _line: None)


def shard_of(how: Configured, toolchain: Ready, corpus: Path, cases: Sequence[str], *, workers: int) -> Shard:
    """The cases of a corpus, to be run on the toolchain as it is asked for."""
    return Shard(
        corpus=str(corpus.absolute()),
        cases=tuple(cases),
        backend=how.name,
        toolchain=toolchain.digest,
        python=toolchain.python,
        device=how.device,
        options=how.options,
        profile=how.profile,
        workers=workers,
    )


def run_on(shard: Shard, module: str, arguments: Sequence[str], take: Callable[[Event], None]) -> None:
    """Runs `python -m MODULE SHARD.JSON ARGUMENTS…`, handing its events on; raises as `run_tool`."""
    with tempfile.TemporaryDirectory(prefix="assay-shard-") as scratch:
        file = Path(scratch) / "shard.json"
        file.write_text(json.dumps(shard.to_json()), encoding="utf-8")
        run_tool(module, [str(file), *arguments], take)
