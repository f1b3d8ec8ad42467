"""
A registry that the user named by its URL: the only network access of reading a capture.

A schema is asked for when a record first names it, once. A registry that does not answer is asked
no more.

Source: https://docs.confluent.io/platform/current/schema-registry/develop/api.html
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener
from uuid import UUID

from dissector.errors import UsageError
from dissector.values.carriers.carried_schema import SchemaRef
from dissector.values.json_values import json_value
from dissector.values.schemas.registry_entries import add_entry, is_entry
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.source_options import PASSWORD_VARIABLE
from dissector.values.value_limits import ValueProblem

TIMEOUT_S = 5.0

_MAX_ANSWER = 16 << 20
_MAX_REFERENCES = 200
_MAX_MISSING = 1_000
"""Ids without a schema that are asked for: random bytes may look like ids."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class _NoRedirects(HTTPRedirectHandler):
    """Another host is never asked: only those that the user names."""

    def redirect_request(self, *_: Any) -> None:
        return None


class RegistryClient:
    """
    Asks one registry.

    Attributes:
        problem: Why it is asked no more, in one line; empty if it is.
    """

    def __init__(self, url: str, user: str = "", timeout_s: float = TIMEOUT_S) -> None:
        """
        Check the URL; nothing is sent yet.

        Args:
            url: Where its API begins, `http://registry:8081`.
            user: `NAME:PASSWORD`, or a name with the password in $KAFKASHARK_VALUES_PASSWORD.
            timeout_s: Seconds to wait for an answer.

        Raises:
            UsageError: It is no URL, or a password would be sent in plain text.
        """
        try:
            parts = urlsplit(url)
            host = parts.hostname
        except ValueError:
            host = None
        if not host or parts.scheme not in ("http", "https"):
            raise UsageError(f"{url}: not the URL of a registry, https://HOST[:PORT]")
        if parts.username is not None:
            raise UsageError(f"{parts.hostname}: give the user of a registry by --values-user")
        if user and parts.scheme == "http" and host not in _LOOPBACK:
            raise UsageError(f"{url}: a password is sent by https only")
        self.url = url.rstrip("/")
        self.problem = ""
        self._timeout_s = timeout_s
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if user:
            self._headers["Authorization"] = f"Basic {b64encode(_login(user)).decode()}"
        self._opener = build_opener(_NoRedirects)
        self._asked: set[SchemaRef] = set()
        self._missing = 0

    def add(self, store: SchemaStore, ref: SchemaRef) -> None:
        """Add a schema to a store, if the registry has it; each is asked for once."""
        if self.problem or ref in self._asked or isinstance(ref, bytes):
            return
        self._asked.add(ref)
        self._add(store, ref)
        if not self.problem and store.find(ref) is None:
            self._missing += 1
            if self._missing > _MAX_MISSING:
                self.problem = f"{self.url}: more than {_MAX_MISSING:,} ids are unknown there"
        if self.problem:
            store.problems.append(self.problem)

    def _add(self, store: SchemaStore, ref: int | UUID) -> None:
        path = f"/schemas/guids/{ref}" if isinstance(ref, UUID) else f"/schemas/ids/{ref}"
        found = self.get(path)
        if not isinstance(found, dict):
            return
        entry = {("guid" if isinstance(ref, UUID) else "id"): _json_ref(ref)} | found
        if not is_entry(entry):
            return
        self._add_references(store, entry.get("references"))
        versions = None if "subject" in entry else self.get(f"{path}/versions")
        named = [each for each in versions or () if isinstance(each, dict)]
        for each in named or [{}]:
            add_entry(store, entry | each)

    def _add_references(self, store: SchemaStore, references: Any) -> None:
        """Add the schemas that a schema refers to, and before them what they refer to."""
        waiting, order = [references], list[dict[str, Any]]()
        seen: set[tuple[str, int]] = set()
        while waiting and len(seen) < _MAX_REFERENCES:
            for each in waiting.pop() or ():
                match each:
                    case {"subject": str(subject), "version": int(version)}:
                        if (subject, version) in seen:
                            continue
                        seen.add((subject, version))
                        path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
                        found = self.get(path)
                        if is_entry(found):
                            assert isinstance(found, dict)
                            order.append(found)
                            waiting.append(found.get("references"))
        for found in reversed(order):
            add_entry(store, found)

    def get(self, path: str) -> Any:
        """Return the JSON of an answer; None if there is none."""
        return self._ask(Request(f"{self.url}{path}", headers=self._headers))

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send JSON, and return the JSON of the answer; None if there is none."""
        headers = self._headers | {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        data = json.dumps(body).encode()
        return self._ask(Request(f"{self.url}{path}", data, headers, method="POST"))

    def _ask(self, request: Request) -> Any:
        if self.problem:
            return None
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                content = answer.read(_MAX_ANSWER + 1)
            return json_value(content) if len(content) <= _MAX_ANSWER else None
        except HTTPError as error:
            error.close()
            if error.code != 404:
                self.problem = f"{self.url}: the registry answers with status {error.code}"
        except ValueProblem as problem:
            self.problem = f"{self.url}: the answer of the registry is {problem}"
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            self.problem = f"{self.url}: the registry does not answer ({reason})"
        return None


def _login(user: str) -> bytes:
    if ":" not in user:
        user = f"{user}:{os.environ.get(PASSWORD_VARIABLE, '')}"
    return user.encode()


def _json_ref(ref: int | UUID) -> int | str:
    return ref if isinstance(ref, int) else str(ref)
