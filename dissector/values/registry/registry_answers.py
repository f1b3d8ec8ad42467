"""
Schemas in requests to a registry and its responses.

Source: https://docs.confluent.io/platform/current/schema-registry/develop/api.html; Apicurio
Registry, REST API v2 and v3 (`/ids/globalIds/`, `/ids/contentIds/`, `/groups/GROUP/artifacts`);
AWS Glue, GetSchemaVersion.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from dissector.values.avro.avro_files import inflated
from dissector.values.json_values import json_value
from dissector.values.registry.http_messages import HttpMessage
from dissector.values.schemas.registry_entries import KIND_NAMES, add_entry, is_entry
from dissector.values.schemas.schema_files import kind_of_text
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.value_limits import ValueProblem

_BY_ID = re.compile(r"/schemas/ids/(\d{1,10})$")
_TEXT_BY_ID = re.compile(r"/schemas/ids/(\d{1,10})/schema$")
_BY_GUID = re.compile(r"/schemas/guids/([0-9A-Fa-f-]{32,36})$")
_SUBJECT = re.compile(r"/subjects/([^/]+)(/versions)?$")
_APICURIO = re.compile(r"/ids/(?:globalIds|contentIds)/(\d{1,18})(?:/references)?$")

_ARTIFACTS = re.compile(r"/groups/[^/]+/artifacts(?:/[^/]+/versions)?$")

_GZIP_OR_ZLIB = 32 + 15


class RegistryAnswers:
    """Takes schemas from exchanges into a store."""

    def __init__(self, store: SchemaStore) -> None:
        """Start; schemas are added to `store`."""
        self._store = store

    def see(self, request: HttpMessage, response: HttpMessage) -> None:
        """Take the schemas of a request and its response, if it is one of a registry."""
        method, target, _ = request.start
        path = target.partition("?")[0].rstrip("/")
        if not response.start[1].startswith("2"):
            return
        try:
            text = _text(response)
            if found := _APICURIO.search(path) or _TEXT_BY_ID.search(path):
                self._add_text(int(found[1]), text)
                return
            answer = json_value(text.encode())
            self._see_json(method, path, request, answer)
        except ValueProblem:
            return

    def _see_json(self, method: str, path: str, request: HttpMessage, answer: Any) -> None:
        if isinstance(answer, list):
            for each in answer:
                if is_entry(each):
                    add_entry(self._store, each)
            return
        if not isinstance(answer, dict):
            return
        if found := _BY_ID.search(path):
            answer = {"id": int(found[1])} | answer
        elif found := _BY_GUID.search(path):
            answer = {"guid": found[1]} | answer
        elif (found := _SUBJECT.search(path)) and method == "POST":
            asked = json_value(_text(request).encode())
            if isinstance(asked, dict):
                answer = {"subject": unquote(found[1]), "version": 0} | asked | answer
        elif method == "POST" and _ARTIFACTS.search(path):
            asked = _text(request)
            answer = _artifact_entry(_sent_schema(asked) if "/v3/" in path else asked, answer)
        elif isinstance(answer.get("SchemaDefinition"), str):
            answer = _glue_entry(answer)
        if is_entry(answer):
            add_entry(self._store, answer)

    def _add_text(self, number: int, text: str) -> None:
        kind = kind_of_text(text)
        if kind is not None:
            self._store.add(kind, text, f"id {number}", refs=(number,))


def _sent_schema(asked: str) -> str:
    """Return the schema in the JSON of Apicurio's API v3."""
    body = json_value(asked.encode())
    for name in ("firstVersion", "content", "content"):
        body = body.get(name, body) if isinstance(body, dict) else body
    return body if isinstance(body, str) else ""


def _artifact_entry(asked: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a schema that was sent to Apicurio."""
    created = answer.get("version")
    answer = created if isinstance(created, dict) else answer
    number, kind, version = answer.get("globalId"), kind_of_text(asked), answer.get("version")
    if kind is None or not isinstance(number, int):
        return {}
    return {
        "id": number,
        "subject": answer.get("artifactId") or answer.get("id"),
        "version": int(version) if isinstance(version, str) and version.isdecimal() else 0,
        "schema": asked,
        "schemaType": KIND_NAMES.get(kind),
    }


def _glue_entry(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "guid": answer.get("SchemaVersionId"),
        "schema": answer["SchemaDefinition"],
        "schemaType": answer.get("DataFormat"),
    }


def _text(message: HttpMessage) -> str:
    body = message.body
    if message.headers.get("content-encoding", "").lower() in ("gzip", "deflate"):
        body = inflated(body, _GZIP_OR_ZLIB)
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise ValueProblem("not UTF-8") from None
