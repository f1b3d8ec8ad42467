"""
Names in a filter: columns of `pairs` and `records`, Wireshark's names, and body fields.

The path of a body field is checked against the declarations of all APIs, which are loaded only when
a filter has such a path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dissector.column_catalogue import (
    ACCOUNTS,
    EXCHANGES,
    FROM_BODIES,
    RECORDS,
    VALUES,
    Catalogue,
)
from dissector.errors import suggestion
from dissector.filter import kinds, wireshark_names
from dissector.filter.body_names import body_fields, body_name, names_matching, similar_paths
from dissector.filter.operands import BodyPath, Column, Name, Source, UnknownName
from dissector.filter.records_in_fields import batch_part, record_part

__all__ = ["BodyPath", "Column", "Name", "Source", "UnknownName", "field_list", "resolve"]

_KINDS_BY_TYPE = {
    "str": kinds.text,
    "strs": kinds.text,
    "bytes": kinds.binary,
    "bool": kinds.boolean,
}
_KINDS_BY_NAME = {
    "client": kinds.endpoint,
    "broker": kinds.endpoint,
    "api_key": kinds.api_key,
    "api": kinds.api,
    "status": kinds.status,
    "errors": kinds.error,
    "error": kinds.error,
    "codec": kinds.codec,
    "timestamp_ms": kinds.time_ms,
}


def _kinds_of(columns: Catalogue) -> dict[str, kinds.Kind]:
    def kind(name: str, type_name: str) -> kinds.Kind:
        if name.endswith("time_ns"):
            return kinds.time_ns
        return _KINDS_BY_NAME.get(name) or _KINDS_BY_TYPE.get(type_name, kinds.number)

    return {each.name: kind(each.name, each.type) for each in columns}


_COLUMNS = _kinds_of((*EXCHANGES, *FROM_BODIES, *ACCOUNTS)) | {
    "request_relative_s": kinds.number,
    "response_relative_s": kinds.number,
    "request_epoch_s": kinds.number,
    "response_epoch_s": kinds.number,
    "request_frame_bytes": kinds.number,
    "response_frame_bytes": kinds.number,
    "request_comments": kinds.text,
    "response_comments": kinds.text,
}
_RECORD_COLUMNS = _kinds_of((*RECORDS, *VALUES))

_ALIASES = {"error": "errors", "topic": "topics", "problem": "problems"}

_BOTH = ("client", "broker")
_ADDRESSES = {
    f"{ip}.{end}": sides
    for ip in ("ip", "ipv6")
    for end, sides in (("addr", _BOTH), ("src", ("client",)), ("dst", ("broker",)))
} | {"ip.host": _BOTH}
"""`src` is the sender of the request, as an exchange has both directions."""
_PORTS = {"tcp.port": _BOTH, "tcp.srcport": ("client",), "tcp.dstport": ("broker",)}

_FRAMES = {
    "frame.number": ("request_packet", "response_packet"),
    "frame.time": ("request_time_ns", "response_time_ns"),
    "frame.time_relative": ("request_relative_s", "response_relative_s"),
    "frame.time_epoch": ("request_epoch_s", "response_epoch_s"),
    "frame.len": ("request_frame_bytes", "response_frame_bytes"),
    "frame.comment": ("request_comments", "response_comments"),
    "tcp.stream": ("connection",),
}
"""An exchange passes if one of the packets that completed its messages does."""

_MEANINGS = {
    "error": "an error in the response; NONE without one",
    "topic": "a topic of request or response",
    "problem": "a problem of request or response",
    "ip.addr": "address of client or broker; a network too (10.0.0.0/8)",
    "ip.host": "as ip.addr",
    "ip.src": "address of the sender of the request",
    "ip.dst": "address of the receiver of the request",
    "tcp.port": "port of client or broker",
    "tcp.srcport": "port of the sender of the request",
    "tcp.dstport": "port of the receiver of the request",
    "tcp.stream": "number of the TCP connection",
    "frame.number": "packet that completed request or response",
    "frame.time": 'time of that packet: "2026-11-23 13:57:58.5"',
    "frame.time_relative": "seconds from the first packet of the capture to that packet",
    "frame.time_epoch": "seconds from the epoch to that packet",
    "frame.len": "length of that packet on the wire",
    "frame.comment": "a comment of that packet in a pcapng file",
}

_RECORD_MEANINGS = {"headers": "a header as tables show it: its key, `=` and its value"}

_NAMES_ELSEWHERE = {
    "packet": "frame.number",
    "time": "frame.time",
    "time_ns": "frame.time",
    "bytes": "request_bytes or response_bytes",
    "port": "tcp.port",
    "stream": "tcp.stream",
    "header": "headers or header.NAME of `kafkashark records`",
}
"""Columns of other commands and words of other tools, and the names of filters."""

_FEW_NAMES = 10

_ALL_NAMES = (
    *_COLUMNS,
    *_ALIASES,
    *_ADDRESSES,
    *_PORTS,
    *_FRAMES,
    *wireshark_names.COLUMNS,
    *wireshark_names.BODIES,
    *wireshark_names.RECORDS,
    *wireshark_names.BATCHES,
    "kafka",
)


_RECORD_ALIASES = {
    "topics": "topic",
    "errors": "error",
    "timestamp": "timestamp_ms",
    "frame.number": "packet",
    "frame.time": "time_ns",
    "kafka.topic_name": "topic",
    "kafka.error": "error",
    "kafka.partition_id": "partition",
    "kafka.offset": "offset",
    "kafka.required_acks": "acks",
    "kafka.producer_id": "producer_id",
    "kafka.producer_epoch": "producer_epoch",
    **{
        name: part
        for name, part in wireshark_names.RECORDS.items()
        if part in ("codec", "key", "magic", "timestamp_ms", "transactional", "value")
    },
}
_OWN_RECORD_COLUMNS = set(_RECORD_COLUMNS) - set(_COLUMNS)
"""Columns of `records` that `pairs` does not have."""

_HEADER_PARTS: Mapping[str, tuple[str, kinds.Kind]] = {
    "headers": ("text", kinds.text),
    "headers.key": ("key", kinds.text),
    "headers.value": ("value", kinds.binary),
    "kafka.header_key": ("key", kinds.text),
    "kafka.header_value": ("value", kinds.binary),
}
"""Names of all headers of a record: what is tested of each, and its kind."""


def resolve(text: str, *, records: bool = False) -> Name:
    """
    Return the sources and kinds of a name.

    Args:
        text: The name.
        records: Whether rows are records, with their exchanges; columns of `records` then take
            precedence over all others.

    Raises:
        UnknownName: The name does not exist.
    """
    found = _of_records(text) if records else None
    if found is not None:
        return found
    column = _ALIASES.get(text, text)
    columns = _FRAMES.get(text) or wireshark_names.COLUMNS.get(text)
    if column in _COLUMNS:
        columns = (column,)
    if columns is not None:
        kind = _COLUMNS[columns[0]]
        empty = "NONE" if columns == ("errors",) else None
        return Name(text, tuple(Column(each, empty=empty) for each in columns), (kind,))
    if text in _ADDRESSES:
        return Name(text, tuple(Column(side) for side in _ADDRESSES[text]), (kinds.endpoint,))
    if text in _PORTS:
        sides = tuple(Column(side, port=True) for side in _PORTS[text])
        return Name(text, sides, (kinds.number,))
    if text in wireshark_names.BODIES:
        return names_matching(text, wireshark_names.BODIES[text])
    if text in wireshark_names.RECORDS or text in wireshark_names.BATCHES:
        return _of_record_fields(text)
    return _body_name(text)


def _of_records(text: str) -> Name | None:
    """Return the name of a column of `records`; None for other names."""
    column = _RECORD_ALIASES.get(text, text)
    if text == "compressed":
        return Name(
            text,
            (Column("codec", is_record_column=True),),
            (kinds.boolean,),
            (lambda codec: [codec != "none"],),
            is_flag=True,
        )
    if found := _of_headers(text) or _of_decoded(text):
        return found
    if column in _OWN_RECORD_COLUMNS:
        empty = "NONE" if column == "error" else None
        source = Column(column, is_record_column=True, empty=empty)
        return Name(text, (source,), (_RECORD_COLUMNS[column],))
    return None


def _of_headers(text: str) -> Name | None:
    """Return a name of the headers of records: all as text, their keys or values, or one."""
    if text in _HEADER_PARTS:
        part, kind = _HEADER_PARTS[text]
        return Name(text, (Column("headers", is_record_column=True, part=part),), (kind,))
    prefix, _, key = text.partition(".")
    if prefix in ("header", "headers") and key:
        source = Column("headers", is_record_column=True, part="value", header=key)
        return Name(text, (source,), (kinds.binary,))
    return None


_FIELD_KINDS = kinds.number, kinds.text, kinds.boolean
"""A field of a key or a value, and of what a hook returns, may have any type."""


def _of_decoded(text: str) -> Name | None:
    """Return a field of a decoded key or value: `value.user.id`."""
    side, _, path = text.partition(".")
    if side not in ("key", "value") or not path:
        return None
    field = Column(f"{side}_decoded", is_record_column=True, path=tuple(path.split(".")))
    if path != "problem":
        return Name(text, (field,), _FIELD_KINDS)
    return Name(text, (Column(f"{side}_problem", is_record_column=True), field), _FIELD_KINDS)


def _of_record_fields(text: str) -> Name:
    """Return a name for a part of each record, or batch, in the messages of an exchange."""
    fields = names_matching(text, ("*.records",))
    if text in wireshark_names.BATCHES:
        attributes = wireshark_names.BATCHES[text]
        kind: kinds.Kind = kinds.number
        if attributes[0].endswith("timestamp"):
            kind = kinds.time_ms
        elif attributes[0].endswith("type"):
            kind = kinds.text
        return Name(text, fields.sources, (kind,), (batch_part(*attributes),))
    part = wireshark_names.RECORDS[text]
    more = {"header_key": kinds.text, "header_value": kinds.binary, "is_control": kinds.boolean}
    return Name(
        text, fields.sources, (more.get(part) or _RECORD_COLUMNS[part],), (record_part(part),)
    )


def _body_name(text: str) -> Name:
    side, *path = text.split(".")
    match side:
        case "request" | "response" if path:
            return body_name(text, side, path)
        case "hook" if path:
            return Name(text, (BodyPath("hook", tuple(path)),), _FIELD_KINDS)
        case "request" | "response":
            raise UnknownName(f"{side} is a body; name a field of it, such as {side}.topics")
    raise UnknownName(f"unknown name {text[:60]!r}{_hint(text)}")


def _hint(text: str) -> str:
    """Return suggestions for an unknown name, or the reason for having none."""
    if text in wireshark_names.WITHOUT_COUNTERPART:
        return f": {wireshark_names.WITHOUT_COUNTERPART[text]}"
    if text in _NAMES_ELSEWHERE:
        return f"; did you mean {_NAMES_ELSEWHERE[text]}?"
    protocol, dot, field = text.rpartition(".")
    meant = similar_paths(field)
    if dot and protocol == "kafka":
        for name, patterns in wireshark_names.BODIES.items():
            if any(pattern.endswith(f".{field}") for pattern in patterns):
                meant = name
                break
    elif dot:
        meant = ""
    if _of_records(text):
        is_own_field = meant.count(".") == 1
        return (
            f"; did you mean {meant}, or the column of `kafkashark records`?"
            if is_own_field
            else "; it is a column of `kafkashark records`"
        )
    if meant:
        return f"; did you mean {meant}?"
    known = [name for name in _ALL_NAMES if dot and name.startswith(f"{protocol}.")]
    hint = suggestion(text, known or _ALL_NAMES)
    if not hint and 0 < len(known) < _FEW_NAMES:
        hint = f"; names of {protocol} are {', '.join(known)}"
    return hint


def field_list(*, records: bool = False) -> Iterator[tuple[str, str, str]]:
    """Yield each name of a filter, the kind of its values, and its meaning."""
    if records:
        for each in (*RECORDS, *VALUES):
            meaning = _RECORD_MEANINGS.get(each.name, each.meaning)
            yield each.name, resolve(each.name, records=True).kinds[0].title, meaning
        yield "timestamp", kinds.time_ms.title, "as timestamp_ms"
        yield "compressed", kinds.boolean.title, "whether the batch of the record is compressed"
        yield "headers.key", kinds.text.title, "key of a header"
        yield "headers.value", kinds.binary.title, "value of a header"
        yield "header.NAME", kinds.binary.title, "value of the header NAME"
        yield "headers.NAME", kinds.binary.title, "as header.NAME"
        for side in ("key", "value"):
            yield f"{side}.PATH", "a field", f"field of the decoded {side}, such as {side}.user.id"
            yield f"{side}.problem", kinds.text.title, f"as {side}_problem"
    listed = set(_RECORD_COLUMNS) if records else set()
    for each in (*EXCHANGES, *FROM_BODIES):
        if each.name not in listed:
            yield each.name, _COLUMNS[each.name].title, each.meaning
    for name, meaning in _MEANINGS.items():
        if name not in listed:
            yield name, resolve(name, records=records).kinds[0].title, meaning
    for name, title, meaning in wireshark_list():
        if meaning and name not in wireshark_names.WITHOUT_COUNTERPART:
            yield name, title, meaning
    for path, title, apis in body_fields():
        yield path, title, apis


def wireshark_list() -> Iterator[tuple[str, str, str]]:
    """Yield each of Wireshark's `kafka.*` names, the kind of its values, and our names for it."""
    for name, columns in wireshark_names.COLUMNS.items():
        yield name, _COLUMNS[columns[0]].title, " ".join(columns)
    for name, patterns in wireshark_names.BODIES.items():
        yield name, resolve(name).kinds[0].title, " ".join(patterns)
    for name, part in wireshark_names.RECORDS.items():
        yield name, resolve(name).kinds[0].title, f"{part.replace('_', ' ')} of a record"
    for name, attributes in wireshark_names.BATCHES.items():
        text = attributes[0].replace("_", " ")
        yield name, resolve(name).kinds[0].title, f"{text} of a record batch"
    for name, reason in wireshark_names.WITHOUT_COUNTERPART.items():
        yield name, "", reason
