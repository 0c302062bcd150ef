"""A server that answers what it is told to, for tests of what goes over the line."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Path → status, headers, body. An absolute `location` is completed with the server's address.
Routes = dict[str, tuple[int, dict[str, str], Any]]


class Site:
    def __init__(self, routes: Routes) -> None:
        self.seen: list[tuple[str, str, Any, dict[str, str]]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

            def do_GET(self) -> None:
                length = int(self.headers.get("content-length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                headers = {name.lower(): value for name, value in self.headers.items()}
                site.seen.append((self.command, self.path, body, headers))
                status, extra, told = routes.get(self.path, (404, {}, {"message": "Not Found"}))
                if extra.get("etag") and headers.get("if-none-match") == extra["etag"]:
                    status, told = 304, None
                data = (
                    told.encode()
                    if isinstance(told, str)
                    else json.dumps(told).encode()
                    if told is not None
                    else b""
                )
                self.send_response(status)
                for name, value in {**extra, "content-length": str(len(data))}.items():
                    self.send_header(name, value.replace("$", site.url))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_PATCH = do_GET

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Site:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
