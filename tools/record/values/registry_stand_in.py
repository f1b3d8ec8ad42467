"""A stand-in for a registry on loopback: Confluent's API, and what serdes ask of Apicurio's."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import NAMESPACE_URL, uuid5

_VERSIONS = re.compile(r"/subjects/([^/]+)/versions(?:/(\w+))?$")
_SUBJECT = re.compile(r"/subjects/([^/]+)$")
_BY_ID = re.compile(r"/schemas/ids/(\d+)$")
_USES = re.compile(r"/schemas/ids/(\d+)/versions$")
_BY_GUID = re.compile(r"/schemas/guids/([0-9a-f-]+)$")
_ARTIFACTS = re.compile(r"/apis/registry/v2/groups/([^/]+)/artifacts$")
_GLOBAL_ID = re.compile(r"/apis/registry/v2/ids/globalIds/(\d+)(/references)?$")

_FIRST_ID = 41


class Registry:
    """What it knows: entries as Confluent's API has them."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.url = ""
        self.port = 0

    def register(self, subject: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the entry of a schema, which is new or known."""
        content = {key: body[key] for key in ("schema", "schemaType", "references") if key in body}
        text = json.dumps(content, sort_keys=True)
        for each in self.entries:
            if each["subject"] == subject and each["text"] == text:
                return each
        same = next((each for each in self.entries if each["text"] == text), None)
        versions = [each for each in self.entries if each["subject"] == subject]
        entry = {
            "subject": subject,
            "version": len(versions) + 1,
            "id": same["id"] if same else _FIRST_ID + len(self.entries),
            "guid": str(uuid5(NAMESPACE_URL, text)),
            **content,
            "text": text,
        }
        self.entries.append(entry)
        return entry

    def found(self, **wanted: Any) -> dict[str, Any] | None:
        """Return the newest entry with these values."""
        for each in reversed(self.entries):
            if wanted.items() <= each.items():
                return each
        return None

    def answer(self, method: str, path: str, body: bytes, headers: Any) -> Any:
        """Return the answer to a request; None: not found."""
        if found := _ARTIFACTS.search(path):
            return self._artifact(unquote(found[1]), body, headers)
        if found := _GLOBAL_ID.search(path):
            if found[2]:
                return []
            entry = self.found(id=int(found[1]))
            return None if entry is None else entry["schema"]
        if found := _USES.search(path):
            uses = [each for each in self.entries if each["id"] == int(found[1])]
            return [{"subject": each["subject"], "version": each["version"]} for each in uses]
        return _shown(self._confluent(method, path, body))

    def _confluent(self, method: str, path: str, body: bytes) -> dict[str, Any] | None:
        if (found := _VERSIONS.search(path)) and method == "POST":
            return self.register(unquote(found[1]), json.loads(body))
        if found := _VERSIONS.search(path):
            version = {} if found[2] == "latest" else {"version": int(found[2])}
            return self.found(subject=unquote(found[1]), **version)
        if found := _SUBJECT.search(path):
            return self.found(subject=unquote(found[1]), schema=json.loads(body)["schema"])
        if found := _BY_ID.search(path):
            return self.found(id=int(found[1]))
        if found := _BY_GUID.search(path):
            return self.found(guid=found[1])
        return None

    def _artifact(self, group: str, body: bytes, headers: Any) -> dict[str, Any]:
        name = headers["X-Registry-ArtifactId"]
        entry = self.register(name, {"schema": body.decode()})
        return {
            "groupId": group,
            "id": name,
            "type": headers["X-Registry-ArtifactType"],
            "version": str(entry["version"]),
            "globalId": entry["id"],
            "contentId": entry["id"],
            "state": "ENABLED",
            "createdOn": "2026-11-28T00:00:00+0000",
        }


def _shown(entry: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if entry is None else {key: entry[key] for key in entry if key != "text"}


@contextmanager
def running_registry() -> Iterator[Registry]:
    """Run a registry during the block."""
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = urlsplit(self.path).path
            answer = registry.answer(self.command, path, body, self.headers)
            status = 404 if answer is None else 200
            answer = {"error_code": 40403, "message": "not found"} if answer is None else answer
            content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.port = server.server_port
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
