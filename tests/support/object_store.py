"""An object store: moto's S3 server on this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

moto_backends = pytest.importorskip("moto.s3.models").s3_backends
moto = pytest.importorskip("moto.server")
boto3 = pytest.importorskip("boto3")
pytest.importorskip("s3fs")


class Store:
    """An S3 server that can be stopped and started on the same port."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._server: Any = None
        self.start()
        moto_backends.reset()  # moto keeps what is stored for as long as the process lives
        self.client = boto3.client("s3", endpoint_url=self.url)
        self.client.create_bucket(Bucket="reports")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._server = moto.ThreadedMotoServer("127.0.0.1", self.port, verbose=False)
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def keys(self) -> list[str]:
        return [one["Key"] for one in self.client.list_objects_v2(Bucket="reports").get("Contents", [])]


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A server with the bucket `reports`, which s3:// leads to."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    made = Store()
    monkeypatch.setenv("AWS_ENDPOINT_URL", made.url)
    yield made
    made.stop()
