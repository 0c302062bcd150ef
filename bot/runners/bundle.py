"""A shard with its cases as one file, for a machine that does not share our disk.

A tar archive: `shard.json`; `toolchain.json`, if an object store has the toolchain; the cases as packs of
prepared records (`fuzzing.execute.case_cache`), so that the machine neither writes nor checks a file for
each; and `cases/ID/NAME` for each file of a case without a record. It is data: its reader takes these names
only.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import tarfile
import threading
from collections.abc import Callable, Generator
from pathlib import Path

from platformdirs import user_cache_path

from bot.errors import InfrastructureError, RunnerError
from bot.runners.line_batches import LineBatches
from bot.runners.local import SHARD_PROGRAM
from bot.runners.process_stream import stream_lines
from bot.runners.toolchain_archives import ToolchainArchive, fetch_toolchain
from fuzzing.cases import Corpus
from fuzzing.errors import UsageError
from fuzzing.execute.case_cache import PACK_FOLDER, CaseCache
from fuzzing.execute.reference_runner import REFERENCES_FOLDER
from fuzzing.execute.shard import Shard as CaseShard

#: Most bytes of a bundle, and of what is unpacked of one: 4,000 cases have some 60 MB.
MAX_BYTES = 1 << 30
_FILE = re.compile(r"cases/([0-9a-f]{64})/([A-Za-z0-9_]+\.[a-z0-9]+)")
_SHARD, _TOOLCHAIN = "shard.json", "toolchain.json"
_PACK = re.compile(re.escape(PACK_FOLDER) + r"/[0-9a-f]")


def pack_shard(shard: CaseShard, toolchain: ToolchainArchive | None = None) -> bytes:
    """The shard and its cases; raises RunnerError if a case cannot be read.

    toolchain  for machines that lack the shard's interpreter
    """
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        _add(archive, _SHARD, json.dumps(shard.to_json()).encode())
        if toolchain is not None:
            _add(archive, _TOOLCHAIN, json.dumps(toolchain.to_json()).encode())
        corpus = Corpus(shard.corpus)
        packs, left = CaseCache(corpus).pack(shard.cases)
        for path, pack in packs.items():
            _add(archive, path, pack)
        for case in left:
            try:
                for file in sorted(Path(corpus.folder(case)).iterdir()):
                    _add(archive, f"cases/{case}/{file.name}", file.read_bytes())
            except OSError as error:
                raise RunnerError(f"case {case} cannot be sent to a runner: {error.strerror}") from None
    if made.tell() > MAX_BYTES:
        raise RunnerError(f"a shard of {made.tell()} bytes is too large for a runner; at most {MAX_BYTES}")
    return made.getvalue()


def unpack_shard(bundle: bytes, folder: Path, python: str = "") -> CaseShard:
    """The shard of a bundle, with its corpus below `folder`.

    python  an interpreter of this machine with the shard's compiler; "" for the path in the shard, or where
            that is not, for the toolchain in the object store

    Raises RunnerError for a file that is no bundle, and where there is no such interpreter;
    InfrastructureError if the store does not work.
    """
    try:
        shard, toolchain = _extract(bundle, folder)
    except (tarfile.TarError, UsageError, ValueError, KeyError) as error:
        raise RunnerError(
            f"this is no bundle of a shard: {error}; install the version of Assay that the service has"
        ) from None
    _keep_references(folder / "corpus")
    if not python and toolchain is not None and not Path(shard.python).is_file():
        python = str(fetch_toolchain(toolchain))
    changes = {"corpus": str(folder / "corpus")} | ({"python": python} if python else {})
    shard = CaseShard.from_json(shard.to_json() | changes)
    if not Path(shard.python).is_file():
        raise RunnerError(
            f"this machine has no {shard.python}, the interpreter with {shard.backend}; share the folder "
            "of the toolchains with it, set ASSAY_ARTIFACTS_URL for the service, or name an interpreter "
            "that has the same compiler"
        )
    return shard


def run_bundle(
    bundle: bytes, folder: Path, stop: threading.Event, python: str = ""
) -> Generator[list[bytes], None, None]:
    """Runs the shard of a bundle here, and yields its events in batches, each as a line of JSON.

    They are not validated: whoever sent the bundle does that. Errors of the run are an event.
    """
    lines = LineBatches()

    def run() -> None:
        try:
            _run_shard(unpack_shard(bundle, folder, python), folder, lines.put, stop)
        except InfrastructureError as error:
            event = {"event": "error", "kind": "infrastructure", "message": str(error)}
            lines.put(json.dumps(event).encode())
        finally:
            lines.end()

    thread = threading.Thread(target=run, name="bundle")
    thread.start()
    try:
        yield from lines
    finally:
        stop.set()
        thread.join()


def _run_shard(
    shard: CaseShard, folder: Path, on_line: Callable[[bytes], None], stop: threading.Event
) -> None:
    file = folder / "shard.json"
    file.write_text(json.dumps(shard.to_json()), encoding="utf-8")
    result = stream_lines("the shard", (*SHARD_PROGRAM, str(file)), on_line, stop, cwd=folder)
    if result.status and not result.stopped:
        raise RunnerError(f"the shard's process {result.describe()}")


def _extract(bundle: bytes, folder: Path) -> tuple[CaseShard, ToolchainArchive | None]:
    total, toolchain = 0, None
    with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
        for member in archive:
            total += member.size
            place = _place(member.name)
            if not member.isfile() or total > MAX_BYTES or not (place or member.name in (_SHARD, _TOOLCHAIN)):
                raise ValueError(f"unexpected member {member.name[:100]!r}")
            content = archive.extractfile(member)
            assert content is not None
            if member.name == _SHARD:
                shard = CaseShard.from_json(json.loads(content.read()))
                continue
            if member.name == _TOOLCHAIN:
                toolchain = ToolchainArchive.from_json(json.loads(content.read()))
                continue
            target = folder / "corpus" / place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())
    return shard, toolchain


def _keep_references(corpus: Path) -> None:
    """Keeps the libraries' outputs in the user's cache folder, for later shards of the same cases.

    They are named by case and release of the library. Without the folder they are computed again.
    """
    kept = user_cache_path("assay") / "references"
    with contextlib.suppress(OSError):
        kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        corpus.mkdir(exist_ok=True)
        (corpus / REFERENCES_FOLDER).symlink_to(kept)


def _place(name: str) -> str:
    """Where a member is below the corpus; "" for other members."""
    if _PACK.fullmatch(name):
        return name
    found = _FILE.fullmatch(name)
    return f"{found[1][:2]}/{found[1]}/{found[2]}" if found else ""


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
