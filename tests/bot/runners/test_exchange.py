"""What runners on other machines may send: signed, in order, once."""

from __future__ import annotations

import io
import json
import os
import tarfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from bot.errors import RunnerError
from bot.runners import LocalRunner
from bot.runners.bundle import pack_shard, unpack_shard
from bot.runners.exchange import MAX_AGE_S, Exchange, is_signed, sign
from fuzzing.cases import Corpus
from fuzzing.execute.case_cache import CaseCache
from tests.bot.cli.command_helpers import add_case
from tests.bot.runners.pool_helpers import KEY, add_cases, make_shard, run, serve, verdicts

EVENT = b'{"event": "start", "cases": 1}\n'


class Service:
    """The routes of an exchange with one attempt, as a runner asks them."""

    def __init__(self, exchange: Exchange, url: str) -> None:
        self.exchange, self._url = exchange, url
        self.attempt = exchange.open(b"bundle")

    def send(
        self,
        action: str,
        number: int = 0,
        body: bytes = b"",
        *,
        signature: str | None = None,
        attempt: str = "",
        signed_for: str = "",
    ) -> int:
        attempt = attempt or self.attempt
        if signature is None:
            signature = sign(KEY, signed_for or attempt, action, number, body)
        headers = {"X-Assay-Number": str(number), "X-Assay-Signature": signature}
        url = f"{self._url}/runners/{attempt}/{'events?last' if action == 'last' else action}"
        method = "GET" if action == "bundle" else "POST"
        return requests.request(method, url, data=body, headers=headers, timeout=60).status_code


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    exchange = Exchange(tmp_path)
    with serve(exchange) as url:
        yield Service(exchange, url)


def test_uploads_arrive_in_order_and_end(service: Service) -> None:
    assert service.send("bundle") == 200
    assert service.exchange.silence(service.attempt) is None
    assert service.send("events", 0, EVENT) == 204
    assert service.exchange.silence(service.attempt) is not None
    assert service.send("last", 1) == 204
    assert service.exchange.take(service.attempt, 0) == [json.loads(EVENT)]
    assert service.exchange.take(service.attempt, 1) == []
    assert service.exchange.take(service.attempt, 2) is None
    assert service.exchange.has_ended(service.attempt, 2)
    assert not service.exchange.has_ended(service.attempt, 1)


@pytest.mark.parametrize("signature", ["", "0" * 64, "ü", sign(b"x" * 32, "", "events", 0, EVENT)])
def test_nothing_unsigned_is_kept(service: Service, signature: str) -> None:
    header = signature.encode().decode("latin-1")
    assert service.send("events", 0, EVENT, signature=header) == 401
    assert service.exchange.take(service.attempt, 0) is None
    assert service.exchange.silence(service.attempt) is None


def test_a_signature_holds_for_one_request(service: Service) -> None:
    other = service.exchange.open(b"bundle")
    good = sign(KEY, service.attempt, "events", 0, EVENT)
    assert service.send("events", 0, EVENT, signature=good) == 204
    assert service.send("events", 1, EVENT, signature=good) == 401, "another number"
    assert service.send("last", 0, EVENT, signature=good) == 401, "another action"
    assert service.send("events", 0, EVENT + b" ", signature=good) == 401, "other bytes"
    assert service.send("events", 0, EVENT, attempt=other, signed_for=service.attempt) == 401, (
        "another attempt"
    )


def test_a_replay_changes_nothing(service: Service) -> None:
    for _ in range(3):
        assert service.send("events", 0, EVENT) == 204, "an answer may be lost, so the runner sends it again"
    assert service.exchange.take(service.attempt, 0) == [json.loads(EVENT)]
    assert service.exchange.take(service.attempt, 1) is None


def test_what_is_out_of_order_or_another_is_refused(service: Service) -> None:
    assert service.send("events", 1, EVENT) == 409
    assert service.send("events", 0, EVENT) == 204
    assert service.send("events", 0, b"{}\n") == 409
    assert service.send("last", 1) == 204
    assert service.send("events", 2, EVENT) == 409


def test_a_withdrawn_attempt_takes_nothing(service: Service) -> None:
    assert service.send("alive") == 204
    service.exchange.close(service.attempt)
    service.exchange.close(service.attempt)
    for action in ("bundle", "alive", "events", "last"):
        assert service.send(action) == 410
    assert service.send("alive", attempt="..") in (404, 410)
    assert service.send("alive", attempt="0" * 31) == 410


def test_what_a_killed_process_left_is_removed_after_a_day(service: Service, tmp_path: Path) -> None:
    left = tmp_path / service.attempt
    os.utime(left, (0, time.time() - MAX_AGE_S + 60))
    service.exchange.open(b"bundle")
    assert left.exists()
    os.utime(left, (0, time.time() - MAX_AGE_S - 60))
    service.exchange.open(b"bundle")
    assert service.send("alive") == 410


def test_without_a_key_nobody_is_let_in(tmp_path: Path) -> None:
    exchange = Exchange(tmp_path)
    with serve(exchange, b"") as url:
        service = Service(exchange, url)
        assert service.send("alive", signature=sign(b"", service.attempt, "alive", 0, b"")) == 401
    assert not is_signed(b"", sign(b"", "a", "b", 0, b""), "a", "b", 0, b"")


@pytest.mark.parametrize("body", [b"[1]\n", b"{\n", b"\xff\n", b"[" * 100_000])
def test_what_is_no_event_is_an_error_of_the_runner(service: Service, body: bytes) -> None:
    assert service.send("events", 0, body) == 204
    with pytest.raises(RunnerError, match="no JSON object"):
        service.exchange.take(service.attempt, 0)


def test_a_bundle_is_the_shard_with_its_cases(tmp_path: Path) -> None:
    shard = make_shard(add_cases(tmp_path / "cases", 5))
    found = unpack_shard(pack_shard(shard), tmp_path / "there")
    assert (found.cases, found.python) == (shard.cases, shard.python)
    here, there = Corpus(shard.corpus), CaseCache(Corpus(found.corpus))
    assert [there.get(case) for case in found.cases] == [here.get(case) for case in shard.cases]
    assert list(Corpus(found.corpus).ids()) == [], "they are prepared already"


def test_a_corrupt_case_is_sent_as_it_is(tmp_path: Path) -> None:
    shard = make_shard(add_cases(tmp_path / "cases", 2))
    corrupt = Corpus(shard.corpus).folder(shard.cases[0])
    (corrupt / "model.onnx").write_bytes(b"cut off")
    found = unpack_shard(pack_shard(shard), tmp_path / "there")
    assert list(Corpus(found.corpus).ids()) == [shard.cases[0]]
    assert (Corpus(found.corpus).folder(shard.cases[0]) / "model.onnx").read_bytes() == b"cut off"
    assert sorted(verdict for _, verdict, _ in verdicts(run(LocalRunner(1), found))) == [
        "invalid",
        "wrong_result",
    ]


def test_a_machine_computes_a_reference_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user_cache = tmp_path / "cache"  # of this test alone: others of the process leave references, too
    monkeypatch.setenv("XDG_CACHE_HOME", str(user_cache))
    Corpus(tmp_path / "cases").add(replace(add_case("test_add"), expected=None))
    bundle = pack_shard(make_shard(tmp_path / "cases"))
    cached = []
    for place in ("first", "second"):
        *events, end = run(LocalRunner(1), unpack_shard(bundle, tmp_path / place))
        assert [one["outcome"]["verdict"] for one in events[1:]] == ["pass"]
        cached.append(end["cached"]["references"])
    assert cached == [0, 1]
    assert len(list(user_cache.rglob("*.json"))) == 1


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "cases/../x", f"cases/{'a' * 64}/../../x.y", "shard.txt", ".prepared/x"]
)
def test_a_bundle_writes_nowhere_else(name: str, tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(RunnerError, match="no bundle"):
        unpack_shard(made.getvalue(), tmp_path / "there")
    assert list(tmp_path.rglob("x*")) == []


def test_a_machine_without_the_toolchain_says_so(tmp_path: Path) -> None:
    shard = make_shard(add_cases(tmp_path / "cases", 2))
    bundle = pack_shard(shard).replace(
        json.dumps(shard.python).encode(), json.dumps("/no" + shard.python[3:]).encode()
    )
    with pytest.raises(RunnerError, match="this machine has no /no"):
        unpack_shard(bundle, tmp_path / "there")
