"""
The same messages with kio and kafka-python, which support some versions.

Both are independent codecs made from Kafka's definitions. They must decode our bytes to the same
values, and encode their objects to the same bytes.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import typing
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import UnknownAPIKey, UnknownEntity, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from dissector.protocol.api import Api
from dissector.protocol.apis import api_name
from dissector.protocol.schema import Field, split_tagged
from tests.value_sources import (
    DRAWN,
    VERSIONS,
    Source,
    Version,
    every_api,
    go_through,
    sources,
    versions,
)

with warnings.catch_warnings():
    # kafka-python loads its definitions by functions deprecated in Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.api_message import ApiMessage


def _by_api(messages: list[Version]) -> dict[str, list[Version]]:
    out: dict[str, list[Version]] = {}
    for message in messages:
        out.setdefault(api_name(message.key), []).append(message)
    return out


def _text(value: str) -> str:
    """Return a text without invalid UTF-8, which both oracles refuse."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# ---- kio ---------------------------------------------------------------------------------------

KIO_NAMES = {
    # Kafka 4.4 gave these fields of TxnOffsetCommitRequest and StreamsGroupHeartbeatResponse v0
    # other names; the bytes are the same.
    "generation_id_or_member_epoch": "generation_id",
    "acceptable_recovery_lag_legacy": "acceptable_recovery_lag",
    # A reserved word of Python.
    "id": "id_",
}

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
KNOWN_ERRORS = [int(code) for code in ErrorCode]


@cache
def _kio_class(message: Version) -> Any:
    load = load_request_schema if message[1] == "request" else load_response_schema
    try:
        return load(message[0], message.version)
    except (UnknownAPIKey, UnknownEntity):
        return None


def _known_to_kio(messages: list[Version]) -> list[Version]:
    """Return the messages known to kio; its modules, one for each version, take long to load."""
    return [message for message in messages if _kio_class(message) is not None]


@cache
def _kio_field(owner: Any, name: str) -> dataclasses.Field[Any]:
    have = {f.name: f for f in dataclasses.fields(owner)}
    # A time in milliseconds becomes a timedelta or datetime, and loses the unit in its name.
    names = (name, name.removesuffix("_ms"), KIO_NAMES.get(name, ""))
    return next(have[n] for n in names if n in have)


def _kio_child(hint: Any) -> Any:
    """Return the dataclass inside `tuple[X, ...] | None`, `X | None` or `X`."""
    if dataclasses.is_dataclass(hint):
        return hint
    return next(filter(None, map(_kio_child, typing.get_args(hint))), None)


def _kio_fitted(fields: tuple[Field, ...], version: int, owner: Any, body: Any) -> dict[str, Any]:
    """Change values of a body outside the range of kio's Python types."""
    out = {}
    for field in itertools.chain(*split_tagged(fields, version)):
        known = _kio_field(owner, field.name)
        value = body[field.name]
        if field.fields and value is not None:
            child = _kio_child(known.type)
            if field.type == "struct":
                value = _kio_fitted(field.fields, version, child, value)
            else:
                value = [_kio_fitted(field.fields, version, child, item) for item in value]
        out[field.name] = _kio_scalar(known, value)
    return out


def _kio_scalar(known: dataclasses.Field[Any], value: Any) -> Any:
    match known.metadata.get("kafka_type"):
        case "error_code":
            return KNOWN_ERRORS[value % len(KNOWN_ERRORS)]
        case "timedelta_i64":  # of 10^9 days at most
            return value % 10**15
        case "datetime_i64":  # whole seconds from 1970 on, or null
            null = type(None) in typing.get_args(known.type) and value % 3 == 0
            return -1 if null else value % 10**11 * 1000
        case "string" if isinstance(value, str):
            return _text(value)
        case "string" if value is not None:
            return [_text(item) for item in value]
    return value


def _kio_values(fields: tuple[Field, ...], version: int, entity: Any) -> dict[str, Any]:
    """Return the values of a kio object in our form."""
    out: dict[str, Any] = {}
    for field in itertools.chain(*split_tagged(fields, version)):
        known = _kio_field(type(entity), field.name)
        value = getattr(entity, known.name)
        if field.type == "struct":
            value = value and _kio_values(field.fields, version, value)
        elif field.type == "[]struct":
            value = value and [_kio_values(field.fields, version, item) for item in value]
        match value:
            case timedelta():
                value = value // MILLISECOND
            case datetime():
                value = (value - EPOCH) // MILLISECOND
            case None if known.metadata.get("kafka_type") == "datetime_i64":
                value = -1
            case None if field.type == "uuid":
                value = UUID(int=0)
            case tuple():
                value = [UUID(int=0) if item is None else item for item in value]
        out[field.name] = value
    return out


def _kio(message: Version, source: Source) -> None:
    schema, version, owner = message.schema, message.version, _kio_class(message)
    drawn = source.value(schema, version, unknown=False)  # kio drops unknown tags
    body = _kio_fitted(schema.fields, version, owner, drawn)
    written = schema.codec(version).build(body)

    entity, size = entity_reader(owner)(written, 0)
    assert size == len(written)
    assert _kio_values(schema.fields, version, entity) == body

    out = io.BytesIO()
    entity_writer(owner)(out, entity)
    assert out.getvalue() == written
    assert schema.codec(version).parse(out.getvalue()) == body


@pytest.mark.thinned(4)
@every_api
def test_kio_each_version(found: Api) -> None:
    go_through(_known_to_kio(versions(found)), _kio, times=3)


@pytest.mark.long
@every_api
@given(data=st.data(), source=sources())
@DRAWN
def test_kio(found: Api, data: st.DataObject, source: Source) -> None:
    known = _known_to_kio(versions(found))
    if not known:
        pytest.skip("kio does not know the API")
    _kio(data.draw(st.sampled_from(known)), source)


@pytest.mark.long
def test_kio_knows_many_versions() -> None:
    known = _known_to_kio(VERSIONS)
    print(f"{len(known)} message versions compared with kio")
    assert len(known) >= 604
    for message in known:
        assert _kio_class(message).__flexible__ == (message.version in message.schema.flexible)


def _nulls(fields: tuple[Field, ...], version: int, owner: Any, path: str) -> Iterator[str]:
    """Yield the paths of fields declared nullable on one side only."""
    for field in itertools.chain(*split_tagged(fields, version)):
        known = _kio_field(owner, field.name)
        # kio also gives None for a uuid of zeros and a time of -1.
        stands_for_zero = field.type == "uuid" or known.metadata.get("kafka_type") == "datetime_i64"
        null = type(None) in typing.get_args(known.type) and not stands_for_zero
        if null != (version in field.null):
            yield path + field.name
        yield from _nulls(field.fields, version, _kio_child(known.type), f"{path}{field.name}.")


def test_kio_agrees_on_what_may_be_null() -> None:
    for message in _known_to_kio(VERSIONS):
        differ = _nulls(message.schema.fields, message.version, _kio_class(message), "")
        assert list(differ) == [], message


# ---- kafka-python ------------------------------------------------------------------------------

KAFKA_PYTHON_NAMES = {
    # Renamed there, and read as a set of bits.
    "cluster_authorized_operations": "authorized_operations",
    "topic_authorized_operations": "authorized_operations",
    # Has another name since Kafka 4.4.
    "generation_id_or_member_epoch": "generation_id",
}


@cache
def _kafka_python_classes() -> dict[tuple[int, str], Any]:
    return {
        (each.API_KEY, each.type): each
        for each in ApiMessage.__subclasses__()
        if each.__module__.startswith("kafka.protocol.")
    }


def _kafka_python_class(message: Version) -> Any:
    found = _kafka_python_classes().get(message[:2])
    return found if found is not None and message.version <= found.max_version else None


KAFKA_PYTHON = [message for message in VERSIONS if _kafka_python_class(message) is not None]


def _fitted(fields: tuple[Field, ...], version: int, body: Any) -> dict[str, Any]:
    """Return a body with valid UTF-8."""
    out = {}
    for field in itertools.chain(*split_tagged(fields, version)):
        value = body[field.name]
        if value is None:
            pass
        elif field.type == "struct":
            value = _fitted(field.fields, version, value)
        elif field.type == "[]struct":
            value = [_fitted(field.fields, version, item) for item in value]
        elif field.type == "string":
            value = _text(value)
        elif field.type == "[]string":
            value = [_text(item) for item in value]
        out[field.name] = value
    return out


def _kafka_python_values(fields: tuple[Field, ...], version: int, entity: Any) -> dict[str, Any]:
    """Return the values of a kafka-python object in our form."""
    out: dict[str, Any] = {}
    for field in itertools.chain(*split_tagged(fields, version)):
        name = field.name
        value = getattr(entity, name if name in entity.fields else KAFKA_PYTHON_NAMES[name])
        if field.type == "struct" and value is None and field.tag is not None:
            value = field.zero(version)  # missing fields are None
        elif field.type == "struct":
            value = value and _kafka_python_values(field.fields, version, value)
        elif field.type == "[]struct" and value is not None:
            value = [_kafka_python_values(field.fields, version, item) for item in value]
        elif field.type == "uuid" and value is None:
            value = UUID(int=0)
        elif field.type == "[]uuid" and value is not None:
            value = [UUID(int=0) if item is None else item for item in value]
        elif field.type == "int32" and (value is None or isinstance(value, set)):
            bits = sum(1 << bit for bit in ({31} if value is None else value))
            value = bits - (bits >> 31 << 32)
        out[name] = value
    return out


def _kafka_python(message: Version, source: Source) -> None:
    schema, version, owner = message.schema, message.version, _kafka_python_class(message)
    body = _fitted(schema.fields, version, source.value(schema, version, unknown=False))
    if message[:2] == (18, "response"):
        body["error_code"] = 0  # it reads every ApiVersions response with an error as v0
    written = schema.codec(version).build(body)
    entity = owner.decode(written, version=version)
    assert _kafka_python_values(schema.fields, version, entity) == body
    encoded = ApiMessage.encode(entity)  # DeleteTopics has its own method, which requires a header
    assert encoded == written
    assert schema.codec(version).parse(encoded) == body


@pytest.mark.thinned(3)
@pytest.mark.parametrize("found", _by_api(KAFKA_PYTHON).values(), ids=_by_api(KAFKA_PYTHON))
def test_kafka_python_each_version(found: list[Version]) -> None:
    go_through(found, _kafka_python, times=3)


@pytest.mark.long
@pytest.mark.parametrize("found", _by_api(KAFKA_PYTHON).values(), ids=_by_api(KAFKA_PYTHON))
@given(data=st.data(), source=sources())
@DRAWN
def test_kafka_python(found: list[Version], data: st.DataObject, source: Source) -> None:
    _kafka_python(data.draw(st.sampled_from(found)), source)


def test_kafka_python_knows_many_versions() -> None:
    print(f"{len(KAFKA_PYTHON)} message versions compared with kafka-python")
    assert len(KAFKA_PYTHON) >= 524
