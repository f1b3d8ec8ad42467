"""
The fingerprint of an Avro schema, by which single objects name it.

Source: https://avro.apache.org/docs/1.12.0/specification/#schema-fingerprints and
#transforming-into-parsing-canonical-form
"""

from __future__ import annotations

import json
from typing import Any

from dissector.values.avro.avro_schema import declared_name, full_name
from dissector.values.avro.avro_types import PRIMITIVES

_EMPTY = 0xC15D213AA4D7A795


def _table() -> list[int]:
    table = []
    for each in range(256):
        fingerprint = each
        for _ in range(8):
            fingerprint = (fingerprint >> 1) ^ (_EMPTY if fingerprint & 1 else 0)
        table.append(fingerprint)
    return table


_TABLE = _table()


def fingerprint(schema: Any) -> bytes:
    """Return the CRC-64-AVRO of a schema, given as JSON, in the byte order of single objects."""
    value = _EMPTY
    for byte in canonical_form(schema).encode():
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value.to_bytes(8, "little")


def canonical_form(schema: Any, space: str = "") -> str:
    """
    Return the parsing canonical form of a schema that `AvroSchema` accepts.

    Raises:
        SchemaProblem: A named type has no name.
    """
    match schema:
        case str():
            return _quoted(schema if schema in PRIMITIVES else full_name(schema, space))
        case list():
            return f"[{','.join(canonical_form(each, space) for each in schema)}]"
        case {"type": "array", "items": items}:
            return f'{{"type":"array","items":{canonical_form(items, space)}}}'
        case {"type": "map", "values": values}:
            return f'{{"type":"map","values":{canonical_form(values, space)}}}'
        case {"type": ("record" | "error" | "enum" | "fixed") as kind}:
            name, inner = declared_name(schema, space)
            head = f'{{"name":{_quoted(name)},"type":"{kind}"'
            if kind == "enum":
                symbols = ",".join(map(_quoted, schema["symbols"]))
                return f'{head},"symbols":[{symbols}]}}'
            if kind == "fixed":
                return f'{head},"size":{int(schema["size"])}}}'
            fields = ",".join(
                f'{{"name":{_quoted(each["name"])},"type":{canonical_form(each["type"], inner)}}}'
                for each in schema["fields"]
            )
            return f'{head},"fields":[{fields}]}}'
        case _:
            return canonical_form(schema["type"], space)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
