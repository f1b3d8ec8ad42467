"""A registry of the target: finds schemas by their content, and registers them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import unquote


class FakeRegistry:
    """
    What it has.

    Attributes:
        url: Where it listens.
        subjects: The schemas of each subject, as they were sent.
        ids: The ids by content.
    """

    def __init__(self, first_id: int = 100) -> None:
        self.url = ""
        self.subjects: dict[str, list[str]] = {}
        self.ids: dict[str, int] = {}
        self._first_id = first_id

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        _, _, subject, *action = unquote(path).split("/")
        content = json.dumps(body, sort_keys=True)
        known = self.subjects.setdefault(subject, [])
        if action == ["versions"]:
            if content not in known:
                known.append(content)
            return {"id": self.ids.setdefault(content, self._first_id + len(self.ids))}
        if content not in known:
            return None
        version = known.index(content) + 1
        return {**body, "subject": subject, "version": version, "id": self.ids[content]}


@contextmanager
def fake_registry() -> Iterator[FakeRegistry]:
    """Run a registry on loopback."""
    registry = FakeRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = registry.answer(self.path, body)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(found or {"error_code": 40403}).encode())

        def log_message(self, *_: Any) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
