"""
Keys and values with other contents that their schema still reads: each leaf keeps its bytes.

Texts keep their length, numbers their type and size, lists and unions their form. What names the
schema stays, as do null, true, false and names of fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from dissector.protocol.field_roles import ValueKind
from dissector.redaction.messages.values import ValueRedactor
from dissector.values.json_values import json_value
from dissector.values.schemas.registry_entries import SCHEMAS_TOPIC, is_entry
from dissector.values.value_leaves import (
    Leaf,
    LeafKind,
    alike,
    choice_at,
    count_of,
    varint_at,
    varint_of,
)
from dissector.values.value_limits import ValueProblem
from dissector.values.value_reader import ValueReader

_NUMBER_BYTES = 4
"""Marks of fewer bytes leave numbers the lowest of their size, which compress better."""

_UUID = re.compile("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_NO_UUID = str(UUID(int=0))
_ONE_TO_ONE = 8
"""Marks of so many bytes: no two texts become the same."""

_EXPONENT_BITS = {4: 0xFF << 23, 8: 0x7FF << 52}
_KIND_END = re.compile("(?:-key|-value)?$")


class StructuredValues:
    """Replaces the leaves of keys and values."""

    def __init__(self, values: ValueRedactor, reader: ValueReader) -> None:
        """Replace by pseudonyms what the reader decodes."""
        self._values = values
        self._pseudonyms = values.pseudonyms
        self._reader = reader

    def replaced(
        self,
        topic: str | None,
        data: bytes,
        headers: Mapping[str, bytes],
        *,
        is_key: bool,
        mark_bytes: int,
    ) -> bytes | None:
        """
        Return a key or a value with other contents; None if no schema reads it.

        Args:
            topic: The name of the topic, if it is known.
            data: The key or the value.
            headers: The headers of the record.
            is_key: Whether it is the key.
            mark_bytes: Bytes of the keyed marks of texts.
        """
        if topic == SCHEMAS_TOPIC:
            return self._schema_record(data)
        found = self._reader.read(topic, data, headers, is_key=is_key, with_text=False)
        leaves = found.leaves_in(data)
        if leaves is None or found.origin is None:
            return None
        out = bytearray(data)
        for leaf in leaves:
            new = self._leaf(leaf, data, mark_bytes)
            if len(new) == leaf.end - leaf.start:
                out[leaf.start : leaf.end] = new
        decoder, _, at, message = found.origin
        new = bytes(out)
        try:
            decoder.value(new, at, message)
        except ValueProblem:
            return None
        return new

    def _leaf(self, leaf: Leaf, data: bytes, mark_bytes: int) -> bytes:
        content = data[leaf.start : leaf.end]
        match leaf.kind:
            case LeafKind.TEXT:
                text = self._text(content.decode("utf-8", "surrogateescape"), mark_bytes)
                return text.encode("utf-8", "surrogateescape")
            case LeafKind.JSON_TEXT:
                return self._json_text(content, mark_bytes)
            case LeafKind.JSON_NUMBER:
                return self._digits(content, mark_bytes)
            case LeafKind.VARINT:
                return self._varint(leaf, data, mark_bytes)
            case LeafKind.FLOAT:
                return self._float(content, mark_bytes)
            case LeafKind.BYTES:
                is_full = mark_bytes == _ONE_TO_ONE
                return (
                    self._pseudonyms.noise(content)
                    if is_full
                    else self._pseudonyms.content(content, mark_bytes)
                )

    def _text(self, text: str, mark_bytes: int) -> str:
        if _UUID.fullmatch(text):
            data = UUID(text).bytes
            return _NO_UUID if mark_bytes < _NUMBER_BYTES else str(UUID(bytes=self._noise(data)))
        if mark_bytes == _ONE_TO_ONE:
            return self._pseudonyms.text(text)
        data = text.encode("utf-8", "surrogateescape")
        return self._pseudonyms.content(data, mark_bytes).decode()

    def _json_text(self, content: bytes, mark_bytes: int) -> bytes:
        text = json.loads(b'"' + content + b'"', strict=False)
        new = json.dumps(self._text(text, mark_bytes), ensure_ascii=False)[1:-1]
        try:
            found = new.encode()
        except UnicodeEncodeError:
            found = b""
        return (
            found if len(found) == len(content) else self._pseudonyms.content(content, mark_bytes)
        )

    def _digits(self, content: bytes, mark_bytes: int) -> bytes:
        """Return a number of JSON with other digits; zeros at the beginning stay, and exponents."""
        mixed, out, is_first = self._noise(content), bytearray(content), True
        for at, byte in enumerate(content):
            if byte in b"eE":
                break
            if not 0x30 <= byte <= 0x39:
                continue
            low = 0 if not is_first or byte == 0x30 else 1
            if not (is_first and byte == 0x30):
                new = 0 if mark_bytes < _NUMBER_BYTES else mixed[at] % (10 - low)
                out[at] = 0x30 + low + new
            is_first = False
        return bytes(out)

    def _varint(self, leaf: Leaf, data: bytes, mark_bytes: int) -> bytes:
        number = varint_at(data, leaf)
        choices = alike(leaf.choices, number)
        count = count_of(choices)
        mixed = int.from_bytes(self._noise(number.to_bytes(10, "big")), "big")
        index = 0 if mark_bytes < _NUMBER_BYTES else mixed % count
        return varint_of(choice_at(choices, index), leaf.end - leaf.start)

    def _float(self, content: bytes, mark_bytes: int) -> bytes:
        """Return a float of the same magnitude; infinite ones, NaN and 0 stay."""
        number, size = int.from_bytes(content, "little"), len(content)
        bits = _EXPONENT_BITS.get(size, 0)
        exponent, sign = number & bits, number & (1 << 8 * size - 1)
        if exponent in (0, bits):
            return content
        mixed = int.from_bytes(self._noise(content), "little") & ~bits & ~(1 << 8 * size - 1)
        mixed = 0 if mark_bytes < _NUMBER_BYTES else mixed
        return (sign | exponent | mixed).to_bytes(size, "little")

    def _noise(self, data: bytes) -> bytes:
        return self._pseudonyms.noise(data)

    def _schema_record(self, data: bytes) -> bytes | None:
        """Return a record of a registry with the pseudonyms of its subjects, of the same size."""
        try:
            entry = json_value(data)
        except ValueProblem:
            return None
        is_key = isinstance(entry, dict) and entry.get("keytype") == "SCHEMA"
        if not is_key and not is_entry(entry):
            return None
        text = json.dumps(self._with_subjects(entry), separators=(",", ":"), ensure_ascii=False)
        new = text.encode("utf-8", "surrogatepass")
        return new.ljust(len(data)) if len(new) <= len(data) else None

    def _with_subjects(self, part: Any) -> Any:
        if isinstance(part, dict):
            return {
                name: self._subject(each)
                if name == "subject" and isinstance(each, str)
                else self._with_subjects(each)
                if name == "references"
                else each
                for name, each in part.items()
            }
        return [self._with_subjects(each) for each in part] if isinstance(part, list) else part

    def _subject(self, name: str) -> str:
        """Return the subject of the pseudonym of a topic."""
        at = next(_KIND_END.finditer(name)).start()
        return self._values.text(ValueKind.TOPIC, name[:at], {}) + name[at:]
