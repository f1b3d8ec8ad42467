"""
No name and no content of a capture is in its redacted copy, nor in its compressed batches.

The fields are found by the declarations, not by the roles that the redaction goes by: every text,
all bytes, all ids, and keys, values and headers of records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from dissector import Exchange, Message, open_capture
from dissector.protocol.records.field import parse_records
from dissector.protocol.spans import Span, spans
from dissector.redaction.pseudonyms.kafka_words import (
    RESOURCE_NAMES,
    SETTING_NAMES,
    SOFTWARE_NAMES,
    WORDS,
    is_plain_value,
    is_version,
)
from tests.corpus import each_capture
from tests.kafkashark.redacted.redacted_captures import redact

OWN = RESOURCE_NAMES | WORDS | SOFTWARE_NAMES | SETTING_NAMES | {"*", "localhost", "User:*"}
LEAST_NAME = 3
"""Shorter ones may have themselves as pseudonyms."""
LEAST_SOUGHT = 8
"""Shorter ones are in any file by chance."""
MOST_OWN_IDS = 100

_WORD = re.compile(r"[A-Za-z0-9._-]{4,}")


def is_own(text: str) -> bool:
    """Return whether a text is one of Kafka's words, a number, an address of loopback, or short."""
    kind, _, name = text.removeprefix("/").partition(":")
    is_kept = text in OWN or name in OWN or is_plain_value(text) or is_version(text)
    return is_kept or len(text) < LEAST_NAME or kind.startswith(("127.", "0.0.0.0"))


def contents(message: Message) -> Iterator[tuple[str, bytes]]:
    """Yield the path of each text, bytes and id of a message, and its bytes."""
    if message.schema is None or message.body is None or message.is_assumed:
        return
    if message.kind == "request":
        yield "client id", (message.client_id or "").encode("utf-8", "surrogateescape")
    root = spans(message.schema, message.api_version or 0, message.frame, message.body_start)
    for leaf in root.leaves():
        yield from _contents_of(leaf)


def _contents_of(leaf: Span) -> Iterator[tuple[str, bytes]]:
    if leaf.declared is not None and leaf.declared.type == "records" and leaf.value:
        for batch in parse_records(leaf.value):
            for record in batch.records:
                headers = [part for header in record.headers for part in header]
                for part in (record.key, record.value, *headers):
                    data = (
                        part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
                    )
                    yield f"{leaf.path}, decompressed", data or b""
    elif isinstance(leaf.value, str):
        yield leaf.path, leaf.value.encode("utf-8", "surrogateescape")
    elif isinstance(leaf.value, UUID):
        yield leaf.path, leaf.value.bytes
    elif isinstance(leaf.value, bytes):
        yield leaf.path, leaf.value


def stays_rightly(data: bytes) -> bool:
    """Return whether bytes hold nothing that is to be replaced."""
    if len(data) == 16 and int.from_bytes(data, "big") < MOST_OWN_IDS:
        return True
    text = data.decode("utf-8", "backslashreplace")
    is_text = text.isprintable()
    return is_own(text) if is_text else all(map(is_own, _WORD.findall(text)))


def messages(capture: Path, keylogs: tuple[Path, ...] = ()) -> dict[tuple[object, ...], Message]:
    """Return the messages of a capture by what stays in the copy: times, ports and numbers."""
    found: dict[tuple[object, ...], Message] = {}
    for exchange in open_capture(capture, keylogs=keylogs):
        for message in exchange.messages:
            found[(*_place(exchange), message.kind)] = message
    return found


def _place(exchange: Exchange) -> tuple[object, ...]:
    ports = (exchange.client.rpartition(":")[2], exchange.broker.rpartition(":")[2])
    times = exchange.request_time_ns, exchange.response_time_ns
    return *ports, *times, exchange.correlation_id, exchange.api_key


@pytest.mark.thinned(6)
@each_capture("soundness")
def test_no_name_and_no_content_is_left(path: Path, tmp_path: Path) -> None:
    copy = redact(path, tmp_path)
    before, after = messages(path, copy.keylogs), messages(copy.redacted)
    assert after.keys() == before.keys()
    sought, inside = set(), []
    for place, message in before.items():
        pairs = zip(contents(message), contents(after[place]), strict=True)
        for (field, old), (its_field, new) in pairs:
            assert field == its_field
            assert old != new or stays_rightly(old), (
                f"{message.api} {message.kind} {field}: {old!r}"
            )
            inside.append(new)
            if old != new and len(old) >= LEAST_SOUGHT and not stays_rightly(old):
                sought.add(old)
    everything = copy.redacted.read_bytes() + b"\n".join(inside)
    assert [each for each in sought if each in everything] == []
