"""Run the service: receive webhooks, test commits, report."""

from __future__ import annotations

import signal
import socket
import sys
from types import FrameType

import click
import uvicorn

from bot.app import build
from bot.connection_limits import LimitedProtocol, raise_file_limit
from bot.errors import InfrastructureError
from bot.logs import configure
from bot.page_process import PageProcess
from bot.service import Service
from bot.settings import check_service_settings, load_settings
from bot.terminal import echo
from bot.work_process import WorkProcess

#: Seconds that requests may take after SIGTERM; GitHub waits 10 s for an answer.
DRAIN_S = 10
#: Connections waiting to be accepted: redeliveries come in bursts.
BACKLOG = 2048
#: Seconds that a background thread may hold the interpreter while a request waits: each SQLite call releases
#: and reacquires it. Beside one busy thread, 100 deliveries/s were acknowledged in 49-73 ms (median) at
#: Python's default of 5 ms, in 10-16 ms at this value.
SWITCH_INTERVAL_S = 0.0002


class _Server(uvicorn.Server):
    """Prints its address once it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and sockets:
            url = _url(sockets[0])
            echo(f"Assay listens on {url} (webhooks: {url}/webhooks/github)")


@click.command()
@click.option("--host", help="Address to listen on. [ASSAY_HOST; default 127.0.0.1]")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port; 0 picks a free one. [ASSAY_PORT; default 8000]"
)
def command(host: str | None, port: int | None) -> None:
    """Run the service: receive webhooks, test commits, report.

    Settings come from ASSAY_* variables or a file (ASSAY_CONFIG, ./assay.toml). ASSAY_WEBHOOK_SECRET must be
    set, or ASSAY_WATCH to poll repositories. SIGTERM or Ctrl-C stops it gracefully; `assay status` shows what
    it is doing.
    """
    settings = load_settings(host=host, port=port)
    check_service_settings(settings)
    configure(settings.log_format, settings.log_level)
    raise_file_limit()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    service, pages = Service(settings, WorkProcess()), PageProcess()
    with _listen(settings.host, settings.port) as listener:
        try:
            service.open()
            config = uvicorn.Config(
                build(service, pages.make),
                loop="uvloop",
                http=LimitedProtocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=DRAIN_S,
            )
            _run(_Server(config), listener)
        finally:
            pages.close()
            service.close()


def _run(server: _Server, listener: socket.socket) -> None:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        # uvicorn raises the signal again after its shutdown, which would end the process before ours.
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    server.run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _cannot_listen(host, port, error) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, port, error) from error
    return listener


def _cannot_listen(host: str, port: int, error: OSError) -> InfrastructureError:
    return InfrastructureError(
        f"cannot listen on {host} port {port}: {error.strerror}; choose others with --host and --port"
    )


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
