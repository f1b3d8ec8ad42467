"""
The ids that another registry has for known schemas: found by their content, or registered.

Source: https://docs.confluent.io/platform/current/schema-registry/develop/api.html
("POST /subjects/(string: subject)", "POST /subjects/(string: subject)/versions").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from dissector.errors import UsageError
from dissector.values.registry.registry_client import RegistryClient
from dissector.values.schemas.known_schema import AVRO, KnownSchema
from dissector.values.schemas.registry_entries import KIND_NAMES
from dissector.values.schemas.schema_store import SchemaStore

_MAX_DEPTH = 20
"""Levels of references."""


class TargetRegistry:
    """
    Finds schemas in a registry.

    Attributes:
        url: Where it is.
    """

    def __init__(self, url: str, user: str = "", *, registers: bool = False) -> None:
        """
        Check the URL; nothing is sent yet.

        Args:
            url: Where its API begins, `http://registry:8081`.
            user: `NAME:PASSWORD`, or a name with the password in $KAFKASHARK_VALUES_PASSWORD.
            registers: Whether to register schemas that it lacks.

        Raises:
            UsageError: It is no URL, or a password would be sent in plain text.
        """
        self._client = RegistryClient(url, user)
        self.url = self._client.url
        self._registers = registers
        self._referred: dict[tuple[str, int], dict[str, Any] | None] = {}
        self._depth = 0

    def id_of(self, schema: KnownSchema, subjects: Iterable[str], store: SchemaStore) -> int | None:
        """
        Return the id of a schema there; None if it lacks it, and none are registered.

        Args:
            schema: The schema.
            subjects: Where it may be, the first where it is to be registered.
            store: Knows the schemas that it refers to.

        Raises:
            UsageError: The registry does not answer, or refuses.
        """
        names = list(dict.fromkeys(subjects))
        found = self._entry(schema, names, store)
        number = None if found is None else found.get("id")
        return number if isinstance(number, int) and 0 <= number < 1 << 31 else None

    def _entry(
        self, schema: KnownSchema, subjects: list[str], store: SchemaStore
    ) -> dict[str, Any] | None:
        """Return the registry's entry of a schema."""
        body: dict[str, Any] = {"schema": schema.text}
        if schema.kind != AVRO:
            body["schemaType"] = KIND_NAMES.get(schema.kind, schema.kind)
        references = self._references(schema, store)
        if references is None:
            return None
        if references:
            body["references"] = references
        for subject in subjects:
            if (found := self._post(f"/subjects/{quote(subject, safe='')}", body)) is not None:
                return found
        if not self._registers:
            return None
        path = f"/subjects/{quote(subjects[0], safe='')}"
        self._post(f"{path}/versions", body)
        return self._post(path, body)

    def _references(self, schema: KnownSchema, store: SchemaStore) -> list[dict[str, Any]] | None:
        """Return references with the versions of the registry; None if one is not there."""
        found: list[dict[str, Any]] = []
        for name, subject, version in schema.refers_to:
            entry = self._reference(subject, version, store)
            if entry is None:
                return None
            found.append({"name": name, "subject": subject, "version": entry.get("version")})
        return found

    def _reference(self, subject: str, version: int, store: SchemaStore) -> dict[str, Any] | None:
        """Return the entry of a schema that others refer to, asked for once; None in a circle."""
        if (subject, version) not in self._referred:
            self._referred[subject, version] = None
            inner = store.by_subject.get(subject, {}).get(version)
            if inner is not None and self._depth < _MAX_DEPTH:
                self._depth += 1
                self._referred[subject, version] = self._entry(inner, [subject], store)
                self._depth -= 1
        return self._referred[subject, version]

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        answer = self._client.post(path, body)
        if self._client.problem:
            raise UsageError(self._client.problem)
        return answer if isinstance(answer, dict) else None
