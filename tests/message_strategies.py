"""Hypothesis strategies of values for any declaration."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from dissector.protocol.codecs.compiled import UNKNOWN_TAGS
from dissector.protocol.schema import Field, Schema, split_tagged

# Texts may have any bytes: invalid UTF-8 is represented by surrogates.
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
    st.binary(max_size=6).map(lambda b: b.decode("utf-8", "surrogateescape")),
)
BYTES = st.binary(max_size=12)


def _ints(bits: int, signed: bool = True) -> st.SearchStrategy[int]:
    low = -(1 << bits - 1) if signed else 0
    high = (1 << (bits - 1 if signed else bits)) - 1
    return st.one_of(st.integers(low, high), st.sampled_from([low, high, 0, 1]))


_PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": _ints(8),
    "int16": _ints(16),
    "int32": _ints(32),
    "int64": _ints(64),
    "uint16": _ints(16, signed=False),
    "uint32": _ints(32, signed=False),
    "float64": st.floats(allow_nan=False),
    "string": TEXTS,
    "bytes": BYTES,
    "records": BYTES,
    "uuid": st.binary(min_size=16, max_size=16).map(lambda b: UUID(bytes=b)),
}


def values(schema: Schema, version: int, unknown: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """
    Draw a body for a message at a version.

    Args:
        schema: The declaration.
        version: One of its versions.
        unknown: Whether to include undeclared tagged fields.
    """
    return _struct(schema.fields, version, version in schema.flexible and unknown)


def _struct(fields: tuple[Field, ...], version: int, unknown: bool) -> st.SearchStrategy[Any]:
    plain, tagged = split_tagged(fields, version)
    body = st.fixed_dictionaries({f.name: _value(f, version, unknown) for f in plain + tagged})
    if not unknown:
        return body
    free = st.integers(0, 90).filter(lambda tag: tag not in {f.tag for f in tagged})
    tags = st.dictionaries(free, BYTES, max_size=2)
    return st.builds(lambda b, t: {**b, UNKNOWN_TAGS: t} if t else b, body, tags)


def _value(field: Field, version: int, unknown: bool) -> st.SearchStrategy[Any]:
    if field.type == "struct":
        value = _struct(field.fields, version, unknown)
    elif field.type == "[]struct":
        value = st.lists(_struct(field.fields, version, unknown), max_size=2)
    elif field.type.startswith("[]"):
        value = st.lists(_PLAIN[field.type[2:]], max_size=3)
    else:
        value = _PLAIN[field.type]
    drawn = st.one_of(st.none(), value) if version in field.null else value
    if field.tag is None:
        return drawn
    return st.one_of(st.builds(lambda: field.zero(version)), drawn)
