"""
Records of topics in which others keep settings: Kafka Connect, MirrorMaker 2 and ksqlDB.

Their records are those of a user's topic, but hold the passwords of databases: of JSON the values
of secret names are masked, of other text all of it if it holds a credential.

Source: KIP-26 (`config.storage.topic`), KIP-382 (`mm2-configs.CLUSTER.internal`), KIP-507 (session
keys of workers); https://docs.ksqldb.io (the command topic).
"""

from __future__ import annotations

import json
from typing import Any

from dissector.protocol.embedded.secrecy.credentials import MASK, holds_credential

_PARTS_OF_NAMES = (("connect", "config"), ("mm2", "config"), ("ksql", "command_topic"))

_SESSION_KEY = b"session-key"

_MAX_JSON_BYTES = 1 << 20


def is_settings_topic(topic: str) -> bool:
    """Return whether a topic, by its name, holds settings of connectors and the like."""
    name = topic.lower()
    return any(all(part in name for part in parts) for parts in _PARTS_OF_NAMES)


def masked_settings(key: object, value: object) -> object:
    """
    Return the value of a record without the secrets in it, as JSON text; the value itself if none.

    Args:
        key: The key of the record: bytes or text.
        value: Its value, likewise.
    """
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    if not isinstance(data, bytes) or not data:
        return value
    name = key.encode("utf-8", "replace") if isinstance(key, str) else key
    if isinstance(name, bytes) and name.startswith(_SESSION_KEY):
        return MASK
    try:
        settings = json.loads(data) if len(data) <= _MAX_JSON_BYTES else None
        masked = _masked(settings)
    except (ValueError, RecursionError):
        settings = masked = None
    if masked != settings:
        return json.dumps(masked, ensure_ascii=False)
    return MASK if settings is None and holds_credential(data) else value


def _masked(value: Any, name: str = "") -> Any:
    """Return a value of JSON without secrets; `name` is that of its setting."""
    match value:
        case dict():
            named = value.get("name", value.get("key"))
            outer = named if isinstance(named, str) else ""
            return {
                each: _masked(inner, outer if each == "value" and _is_secret(outer) else each)
                for each, inner in value.items()
            }
        case list():
            return [_masked(each, name) for each in value]
        case None | bool() | "":
            return value
        case _:
            is_secret = _is_secret(name) or (isinstance(value, str) and holds_credential(value))
            return MASK if is_secret else value


def _is_secret(name: str) -> bool:
    return holds_credential(f"{name}=x")
