"""
Schemas that headers of a record name.

Source: confluent-kafka-python, schema_registry/common/schema_registry_client.py (`SchemaId`) and
serde.py (`__key_schema_id`, `__value_schema_id`); Apicurio Registry, KafkaSerdeHeaders.java and
ProtobufSerdeHeaders.java.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import UUID

from dissector.values.carriers.carried_schema import CarriedSchema, MessagePlace

CONFLUENT_ID = {True: "__key_schema_id", False: "__value_schema_id"}
"""Confluent's header of a key, or of a value."""

APICURIO_IDS = {
    is_key: [f"apicurio.{side}.{name}" for name in ("globalId", "contentId")]
    for is_key, side in ((True, "key"), (False, "value"))
}
"""Apicurio's headers of keys, or of values."""

_APICURIO_MESSAGE = {True: "apicurio.protobuf.type.key", False: "apicurio.protobuf.type"}
SCHEMA_HEADERS = {is_key: {CONFLUENT_ID[is_key], *APICURIO_IDS[is_key]} for is_key in (True, False)}
"""Headers that name the schema of a key, or of a value."""

NAMING_HEADERS = frozenset(
    (*SCHEMA_HEADERS[True], *SCHEMA_HEADERS[False], *_APICURIO_MESSAGE.values())
)
"""All headers that name schemas, or their messages."""

_ID, _GUID = 0, 1
_ID_END, _GUID_END = 5, 17


def sole_schema_header(headers: Mapping[str, bytes], *, is_key: bool) -> bytes | None:
    """
    Return what names the schema wherever it stands alone: the content of Confluent's header.

    It is empty if no header names a schema; None if more than this header counts.
    """
    if not headers or SCHEMA_HEADERS[is_key].isdisjoint(headers):
        return b""
    named = headers.get(CONFLUENT_ID[is_key], b"")
    return named if len(named) in (_ID_END, _GUID_END) else None


def schemas_in_headers(
    headers: Mapping[str, bytes], content: bytes, *, is_key: bool
) -> Iterator[CarriedSchema]:
    """Yield the schemas that headers name for a key or a value."""
    named = headers.get(CONFLUENT_ID[is_key])
    if named and named[0] == _ID and len(named) >= _ID_END:
        number = int.from_bytes(named[1:_ID_END], "big")
        yield CarriedSchema(number, content, 0, named[_ID_END:] or MessagePlace.INDEXES)
    elif named and named[0] == _GUID and len(named) >= _GUID_END:
        guid = UUID(bytes=named[1:_GUID_END])
        yield CarriedSchema(guid, content, 0, named[_GUID_END:] or MessagePlace.INDEXES)
    for name in APICURIO_IDS[is_key]:
        number_bytes = headers.get(name, b"")
        if len(number_bytes) == 8:
            message_type = headers.get(_APICURIO_MESSAGE[is_key])
            message = MessagePlace.REF if message_type is None else _name(message_type)
            yield CarriedSchema(int.from_bytes(number_bytes, "big"), content, 0, message)


def _name(message_type: bytes) -> str:
    return message_type.decode("utf-8", "replace")
