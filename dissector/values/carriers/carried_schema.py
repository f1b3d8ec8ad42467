"""What a record names as the schema of its key or value."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias
from uuid import UUID

SchemaRef: TypeAlias = int | UUID | bytes
"""An id of a registry, a GUID, or the fingerprint of an Avro schema."""


class CarriedSchema(NamedTuple):
    """
    A schema that a record names, perhaps.

    Attributes:
        ref: The schema.
        content: The bytes that it describes.
        at: Where these begin in `content`.
        message_index: Protobuf's message index, if it stands elsewhere; None: before the bytes.
        is_sure: Whether no other format looks so, known schema or not.
    """

    ref: SchemaRef
    content: bytes
    at: int = 0
    message_index: bytes | None = None
    is_sure: bool = True


def ref_text(ref: SchemaRef) -> str:
    """Return a schema as it is named in columns."""
    if isinstance(ref, bytes):
        return f"fingerprint {ref.hex()}"
    return f"id {ref}" if isinstance(ref, int) else f"guid {ref}"
