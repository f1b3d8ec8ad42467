"""The replacement of one value, by its kind and the fields beside it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from dissector.protocol.embedded.secrecy.credentials import holds_credential
from dissector.protocol.embedded.secrecy.settings import is_sensitive
from dissector.protocol.field_roles import ValueKind
from dissector.redaction.pseudonyms.kafka_words import SETTING_NAMES, is_plain_value
from dissector.redaction.pseudonyms.pseudonyms import Pseudonyms

_BROKER_RESOURCES = (4, 8)
"""Types of configuration resources that are brokers. Source: ConfigResource.java."""
_NUMBER = re.compile(r"-?\d{1,10}", re.ASCII)
_SHARE_KEY = re.compile(r"(.+):([A-Za-z0-9_-]{22}):(\d{1,10})", re.ASCII | re.DOTALL)
"""Key of a share coordinator: group, topic id, partition. Source: SharePartitionKey.java."""

_COORDINATOR_KINDS = {0: ValueKind.GROUP, 1: ValueKind.TRANSACTIONAL_ID, 2: ValueKind.GROUP}

Scope = Mapping[str, Any]
"""The values of the fields beside a field and above it."""


class ValueRedactor:
    """
    Replaces values.

    Attributes:
        pseudonyms: The replacements.
    """

    def __init__(self, pseudonyms: Pseudonyms, kept: Collection[ValueKind] = ()) -> None:
        """Replace all but the values of the kept kinds."""
        self.pseudonyms = pseudonyms
        self._unchanged = frozenset(kept)

    def keeps(self, kind: ValueKind) -> bool:
        """Return whether values of a kind stay."""
        return kind in self._unchanged

    def text(self, kind: ValueKind | None, text: str, scope: Scope) -> str:
        """Return the replacement of a text."""
        if not text or (kind is not None and self._stays(kind, text, scope)):
            return text
        names = self.pseudonyms
        match kind:
            case ValueKind.HOST:
                return names.host(text)
            case ValueKind.REGEX:
                return names.regex(text)
            case ValueKind.PRINCIPAL:
                is_address = scope.get("entity_type") == "ip"
                return names.host(text) if is_address else names.principal(text)
            case ValueKind.RESOURCE:
                return self._resource(text, scope)
            case ValueKind.WORD:
                return names.word(text)
            case ValueKind.SETTING:
                return text if is_known_setting(text) else names.name(text)
            case ValueKind.CONFIG:
                return self._setting_value(text, scope)
            case ValueKind.COORDINATOR_KEY:
                return self._coordinator_key(text, scope)
            case ValueKind.SOFTWARE:
                return names.software(text)
            case ValueKind.SUBTOPOLOGY:
                return text if _NUMBER.fullmatch(text) else names.name(text)
            case ValueKind.SECRET | ValueKind.OPAQUE | None:
                return names.letters(text) if text.isascii() else names.name(text)
            case _:
                return names.name(text)

    def _stays(self, kind: ValueKind, text: str, scope: Scope) -> bool:
        """Return whether a kept text stays: secrets never do."""
        if kind is ValueKind.SETTING:
            return self.keeps(ValueKind.CONFIG)
        is_secret = kind is ValueKind.CONFIG and is_sensitive(_setting(scope), marked=True)
        return self.keeps(kind) and not is_secret and not holds_credential(text)

    def _resource(self, text: str, scope: Scope) -> str:
        kind = scope.get("resource_type", scope.get("resource_type_filter"))
        if text == "*" or (kind in _BROKER_RESOURCES and _NUMBER.fullmatch(text)):
            return text
        return self.pseudonyms.name(text)

    def _setting_value(self, text: str, scope: Scope) -> str:
        name = _setting(scope)
        is_known = isinstance(name, str) and is_known_setting(name) and not is_sensitive(name)
        return text if is_known and is_plain_value(text) else self.pseudonyms.name(text)

    def _coordinator_key(self, text: str, scope: Scope) -> str:
        type_number = scope.get("key_type")
        kind = _COORDINATOR_KINDS.get(0 if type_number is None else type_number)
        shared = _SHARE_KEY.fullmatch(text)
        if shared is None or type_number in (0, 1):
            return text if kind is not None and self.keeps(kind) else self.pseudonyms.name(text)
        group = shared[1] if self.keeps(ValueKind.GROUP) else self.pseudonyms.name(shared[1])
        topic = shared[2] if self.keeps(ValueKind.ID) else self.pseudonyms.base64_id(shared[2])
        return f"{group}:{topic}:{shared[3]}"


def _setting(scope: Scope) -> object:
    """Return the name of the setting that a value belongs to."""
    return scope.get("name") or scope.get("key")


def is_known_setting(name: str) -> bool:
    """Return whether a name is a setting of Kafka."""
    return name in SETTING_NAMES
