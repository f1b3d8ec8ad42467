"""
One field of many keys or values, for filters: no more is made of a value than the field.

A value is stepped over to its end, so that one that does not decode has no fields here either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dissector.filter.evaluate import values_at
from dissector.values.avro.avro_schema import READING_ERRORS
from dissector.values.avro.field_code import FieldReader
from dissector.values.carriers.schema_prefixes import PREFIX_END
from dissector.values.value_limits import ValueProblem
from dissector.values.value_reader import ValueReader

_ERRORS = (*READING_ERRORS, ValueProblem)


class RecordFields:
    """Reads the field at a path."""

    def __init__(self, reader: ValueReader, path: Sequence[str], *, is_key: bool) -> None:
        """Start; the reader decodes what has no faster way."""
        self._reader = reader
        self._path = path
        self._is_key = is_key
        self._known: dict[tuple[str | None, bytes], tuple[FieldReader, Sequence[str]]] = {}

    def values(
        self, topic: str | None, data: bytes, headers: Mapping[str, bytes]
    ) -> Sequence[object]:
        """Return the values at the path in a key or a value; none if it does not decode."""
        known = None if headers else self._known.get((topic, data[:PREFIX_END]))
        if known is not None:
            read, rest = known
            try:
                value, end = read(data, PREFIX_END)
            except _ERRORS:
                end = -1
            if end == len(data):
                is_plain = not rest and type(value) is not list
                return (value,) if is_plain else tuple(values_at(value, rest))
        found = self._reader.read(topic, data, headers, is_key=self._is_key, with_text=False)
        if known is None and not headers:
            self._learn(topic, data)
        return tuple(values_at(found.value, self._path))

    def _learn(self, topic: str | None, data: bytes) -> None:
        faster = self._reader.field_reader(topic, data, self._path, is_key=self._is_key)
        if faster is not None:
            read, depth = faster
            self._known[topic, data[:PREFIX_END]] = read, self._path[depth:]
