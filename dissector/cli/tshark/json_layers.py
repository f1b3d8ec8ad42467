"""
Messages as tshark's JSON, for programs that read it: `-T json`, and `-T ek` for Elasticsearch.

Fields have Wireshark's names, as far as they have a counterpart here (docs/fields.md); a message is
one object, also if it is in several packets. Of names that the user gives, the values are arrays.

Source: the output of TShark 4.0.17, options -T json, -T ek and -e.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

from dissector.cli.capture_source import Source
from dissector.cli.tshark.message_columns import field_rows, message_summary
from dissector.cli.tshark.value_forms import TimeText, calendar_time, iso_time, value_text
from dissector.engine.reading.packet_order import OrderedMessage
from dissector.filter import Name, wireshark_names
from dissector.view.json.body import body_json
from dissector.view.tables.secret_cells import mask_cell
from dissector.view.text.time_style import FRAME_TIMES
from dissector.view.text.value_text import json_text

Layers: TypeAlias = dict[str, Any]
"""Values by protocol and name, or by the names that were asked for."""


_PARTS = {
    "header_key": "headers.key",
    "header_value": "headers.value",
    "is_control": "control",
    "timestamp_ms": "timestamp",
}
"""Parts of records whose place in a body has another name."""


_RECORD_PART = re.compile(r".*\.records:(\d+)\.(?:records(?::\d+)?\.)?([a-z_.]+)")
"""The place of an attribute of a batch, or of a part of a record: its magic, and the name."""

_NAMES_OF_OTHERS: Mapping[bool, tuple[str, ...]] = {
    True: ("kafka.message_codec", "kafka.message_crc", "kafka.message_timestamp_type"),
    False: ("kafka.batch_codec", "kafka.batch_crc", "kafka.batch_timestamp_type"),
}
"""By whether it is a batch: names that it lacks, as those of the other kind have them."""


class Packet(NamedTuple):
    """The time of a message in nanoseconds since the epoch, and its layers."""

    time_ns: int
    layers: Layers


def json_lines(packets: Iterable[Packet]) -> Iterator[str]:
    """Yield an array of documents, one a line."""
    before = "["
    for packet in packets:
        layers = {"_source": {"layers": packet.layers}}
        document = {"_index": _index(packet), "_type": "doc", "_score": None} | layers
        yield f"{before}\n  {json_text(document)}"
        before = ","
    yield "\n]\n" if before == "," else "[]\n"


def ek_lines(packets: Iterable[Packet]) -> Iterator[str]:
    """Yield documents for Elasticsearch's bulk interface, each behind a line that says where to."""
    for packet in packets:
        layers = {
            name: {f"{name}_{_plain(key)}": each for key, each in value.items()}
            if isinstance(value, dict)
            else value
            for name, value in packet.layers.items()
        }
        document = {
            "timestamp": str(packet.time_ns // 1_000_000),
            "layers": {_plain(name): value for name, value in layers.items()},
        }
        index = {"index": {"_index": _index(packet), "_type": "doc"}}
        yield f"{json_text(index)}\n{json_text(document)}\n"


class Form(NamedTuple):
    """How packets are written, and the times in them."""

    lines: Callable[[Iterable[Packet]], Iterator[str]]
    time_text: TimeText


FORMS: Mapping[str, Form] = {
    "json": Form(json_lines, calendar_time),
    "ek": Form(ek_lines, iso_time),
}


def _packet(each: OrderedMessage, begin_ns: int, time_text: TimeText, show_secrets: bool) -> Packet:
    """Return a message with all names that it has values for."""
    summary = message_summary(each, show_secrets)
    (source, source_port), (target, target_port) = map(_split, (summary.source, summary.target))
    ip = "ipv6" if ":" in source else "ip"
    layers: Layers = {
        "frame": {"frame.number": str(each.packet)}
        | {name: text(each.time_ns, begin_ns) for name, text in FRAME_TIMES.items()},
        ip: {f"{ip}.src": source, f"{ip}.dst": target},
        "tcp": {
            "tcp.srcport": source_port,
            "tcp.dstport": target_port,
            "tcp.stream": str(summary.connection),
        },
        "kafka": _kafka(each, time_text, show_secrets),
    }
    return Packet(each.time_ns, layers)


def packets(
    source: Source,
    messages: Iterable[OrderedMessage],
    names: list[Name],
    time_text: TimeText,
    show_secrets: bool,
) -> Iterator[Packet]:
    """Yield messages with all that they have, or with the values of some names."""
    for each in messages:
        if not names:
            yield _packet(each, source.begin_ns, time_text, show_secrets)
            continue
        (row,) = field_rows(source, [each], names, show_secrets)
        cells = zip(names, row, strict=True)
        yield Packet(each.time_ns, {name.text: cell for name, cell in cells if any(cell)})


def _kafka(
    each: OrderedMessage, time_text: TimeText, show_secrets: bool
) -> dict[str, str | list[str]]:
    """Return the fields of a message, in the order of its bytes."""
    exchange, message = each.exchange, each.message
    kind: Literal["request", "response"] = message.kind
    found: dict[str, list[str]] = defaultdict(list)

    def add(name: str, value: object) -> None:
        text = value_text(name, value, time_text)
        if text is not None:
            found[name].append(text)

    def add_all(value: Any, path: str) -> None:
        if isinstance(value, Mapping):
            magic = value.get("magic")
            place = f"{path}:{magic}" if magic in (0, 1, 2) else path
            for key, each in _own_parts(value):
                add_all(each, f"{place}.{key}")
        elif isinstance(value, list):
            for each in value:
                add_all(each, path)
        else:
            for name in _names_at(path):
                add(name, value)

    def shown(column: str, value: Any) -> Any:
        return value if show_secrets else mask_cell(column, value, exchange.known_secrets)

    add("kafka.len", None if exchange.is_logged else message.size)
    for name in ("kafka.api_key", f"kafka.{kind}_key"):
        add(name, message.api_key)
    for name in (*(["kafka.api_version"] if kind == "request" else []), f"kafka.{kind}.version"):
        add(name, message.shown_version)
    add("kafka.correlation_id", message.correlation_id)
    other = exchange.response_packet if kind == "request" else exchange.request_packet
    add("kafka.response_frame" if kind == "request" else "kafka.request_frame", other)
    if kind == "request":
        add("kafka.client_id", shown("client_id", message.client_id))
    for topic in shown("topics", exchange.topics) or ():
        add("kafka.topic_name", topic)
    request = exchange.request if kind == "response" else None
    add_all(body_json(message, request, show_secrets=show_secrets), kind)
    return {name: each[0] if len(each) == 1 else each for name, each in found.items()}


@cache
def _names_at(path: str) -> tuple[str, ...]:
    """Return Wireshark's names of a field: `response.topics.is_internal`."""
    names = [
        name
        for name, patterns in wireshark_names.BODIES.items()
        if any(_is_at(path, pattern) for pattern in patterns)
    ]
    if of_record := _RECORD_PART.fullmatch(path):
        magic, part = of_record.groups()
        records = wireshark_names.RECORDS.items()
        names += [name for name, each in records if _PARTS.get(each, each) == part]
        names += [name for name, parts in wireshark_names.BATCHES.items() if part in parts]
        names = [name for name in names if name not in _NAMES_OF_OTHERS[magic == "2"]]
    return (*names, *(["kafka.error"] if path.endswith("error_code") else []))


def _own_parts(value: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Return the parts of a struct; a message that is not compressed is its only record."""
    match value:
        case {"magic": 0 | 1, "codec": "none", "records": [{} as record]}:
            return {**record, **value, "records": []}.items()
        case _:
            return value.items()


def _is_at(path: str, pattern: str) -> bool:
    return path.endswith(pattern[1:]) if pattern.startswith("*.") else path == pattern


def _split(endpoint: str) -> tuple[str, str]:
    host, _, port = endpoint.rpartition(":")
    return host.strip("[]"), port


def _plain(name: str) -> str:
    """Return a name as Elasticsearch takes it."""
    return name.replace(".", "_")


def _index(packet: Packet) -> str:
    """Return the name of the index: the day of the packet, in the local zone."""
    try:
        day = time.strftime("%Y-%m-%d", time.localtime(packet.time_ns // 1_000_000_000))
    except (OverflowError, ValueError, OSError):
        day = "unknown"
    return f"packets-{day}"
