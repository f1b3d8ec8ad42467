"""
Schemas that the first bytes of a key or value name.

Source: https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/
("Wire format"); Apicurio Registry, DefaultIdHandler.java (8 bytes) and Default4ByteIdHandler.java;
awslabs/aws-glue-schema-registry, AWSSchemaRegistryConstants.java and MessageIndexFinder.java;
Avro's specification, "Single object encoding".
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from dissector.values.avro.avro_files import FINGERPRINT_END, SINGLE_OBJECT_MAGIC, inflated
from dissector.values.carriers.carried_schema import CarriedSchema, MessagePlace

PREFIX_END = _ID_END = 5
_LONG_ID_END = 9
_GUID_END = 17
_GLUE_END = 18
_PLAIN, _ZLIB = 0, 5
_INTEGER_SIZES = (4, 8)
"""Keys of this size may be numbers, whose first byte is mostly 0."""


def schemas_in_prefix(data: bytes) -> Iterator[CarriedSchema]:
    """
    Yield the schemas that the first bytes may name, the most probable first.

    Raises:
        ValueProblem: The content is compressed and damaged.
    """
    match data[0]:
        case 0 if len(data) >= _ID_END:
            number = int.from_bytes(data[1:_ID_END], "big")
            is_sure = len(data) not in _INTEGER_SIZES and number > 0
            yield CarriedSchema(number, data, _ID_END, is_sure=is_sure)
            if len(data) >= _LONG_ID_END:
                number = int.from_bytes(data[1:_LONG_ID_END], "big")
                yield CarriedSchema(number, data, _LONG_ID_END, MessagePlace.REF, is_sure=False)
        case 1 if len(data) >= _GUID_END:
            yield CarriedSchema(UUID(bytes=data[1:_GUID_END]), data, _GUID_END, is_sure=False)
        case 3 if len(data) >= _GLUE_END and data[1] in (_PLAIN, _ZLIB):
            guid = UUID(bytes=data[2:_GLUE_END])
            is_sure = guid.version is not None
            at = _GLUE_END
            if data[1] == _ZLIB:
                data, at = inflated(data[_GLUE_END:]), 0
            yield CarriedSchema(guid, data, at, MessagePlace.SORTED_INDEX, is_sure=is_sure)
        case 0xC3 if data.startswith(SINGLE_OBJECT_MAGIC) and len(data) >= FINGERPRINT_END:
            yield CarriedSchema(data[2:FINGERPRINT_END], data, FINGERPRINT_END)
