"""Injected faults of the double's connections."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest

from tests.github.double import GitHubDouble


@pytest.mark.parametrize("sent", [b"", b'{"title": "x"'])
def test_a_request_whose_sender_died_amid_it_was_never_made(hub: GitHubDouble, sent: bytes) -> None:
    hub.repository("octo/compiler")
    api_server, before = urlsplit(hub.url), len(hub.seen)
    head = (
        f"POST {api_server.path}/repos/octo/compiler/issues HTTP/1.1\r\nHost: {api_server.netloc}\r\n"
        f"Authorization: Bearer {hub.token('octo')}\r\nContent-Length: 100\r\n\r\n"
    )
    with socket.create_connection((str(api_server.hostname), api_server.port or 80), timeout=600) as line:
        line.sendall(head.encode() + sent)
        line.shutdown(socket.SHUT_WR)
        assert line.recv(1000) == b""
    assert (len(hub.seen), hub.violations) == (before, [])
