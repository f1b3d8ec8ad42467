"""What a record names as the schema of its key or value."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeAlias
from uuid import UUID

SchemaRef: TypeAlias = int | UUID | bytes
"""An id of a registry, a GUID, or the fingerprint of an Avro schema."""


class MessagePlace(Enum):
    """Where a value says which message of a Protobuf schema it is."""

    FIRST = "nowhere: the first"
    INDEXES = "Confluent's indexes before it"
    SORTED_INDEX = "AWS Glue's number before it, by the order of names"
    REF = "Apicurio's message with the name before it"


class NamedMessage(NamedTuple):
    """
    The name of a Protobuf message, whatever the bytes before the value say.

    Attributes:
        name: The name.
        place: What these bytes are, if there are any.
    """

    name: str
    place: MessageChoice = MessagePlace.FIRST


MessageChoice: TypeAlias = MessagePlace | bytes | str | NamedMessage
"""A place, or Confluent's indexes, or a name."""


class CarriedSchema(NamedTuple):
    """
    A schema that a record names, perhaps.

    Attributes:
        ref: The schema.
        content: The bytes that it describes.
        at: Where these begin in `content`.
        message: Which message of a Protobuf schema it is.
        is_sure: Whether no other format looks so, known schema or not.
    """

    ref: SchemaRef
    content: bytes
    at: int = 0
    message: MessageChoice = MessagePlace.INDEXES
    is_sure: bool = True


def ref_text(ref: SchemaRef) -> str:
    """Return a schema as it is named in columns."""
    if isinstance(ref, bytes):
        return f"fingerprint {ref.hex()}"
    return f"id {ref}" if isinstance(ref, int) else f"guid {ref}"
