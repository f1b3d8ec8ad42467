"""An HTTP server for scrapes."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from dissector.errors import UsageError
from exporter.metric_series import Snapshot
from exporter.prometheus_text import CONTENT_TYPE, prometheus_lines

PATH = "/metrics"

TIMEOUT_S = 10
"""Limit for a client to send its request, and to take the answer."""


class MetricsServer:
    """
    Answers `GET /metrics` in threads of its own until it is closed.

    Args:
        host: Address to listen at.
        port: Its port; 0 for a free one.
        snapshot: Returns the metrics; it is called by several threads.

    Attributes:
        url: Where the metrics are.

    Raises:
        UsageError: The address can't be used.
    """

    def __init__(self, host: str, port: int, snapshot: Callable[[], Snapshot]) -> None:
        class Handler(_Handler):
            current = staticmethod(snapshot)

        try:
            self._server = _Server((host, port), Handler)
        except OSError as error:
            reason = error.strerror or error
            raise UsageError(f"--listen {host}:{port}: {reason}") from None
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_address[1]}{PATH}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        import socket

        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no fault of ours."""


class _Handler(BaseHTTPRequestHandler):
    timeout = TIMEOUT_S
    server_version = "kafkashark"
    sys_version = ""
    current: Callable[[], Snapshot]

    def do_GET(self) -> None:
        """Answer with the metrics, or with the way to them."""
        match self.path.partition("?")[0]:
            case "/metrics":
                lines = prometheus_lines(self.current())
                self._answer(HTTPStatus.OK, CONTENT_TYPE, "".join(f"{line}\n" for line in lines))
            case "/":
                self._answer(HTTPStatus.OK, "text/plain; charset=utf-8", f"kafkashark: {PATH}\n")
            case _:
                self._answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", f"{PATH}\n")

    def log_message(self, format: str, *values: object) -> None:
        """Scrapes are not worth a line each."""

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
