"""Messages that are replaced in columns equal those that are replaced as objects."""

from __future__ import annotations

from contextlib import closing

import pytest

from dissector.engine.reading.capture import Capture
from dissector.protocol.field_roles import ValueKind
from dissector.redaction import redaction as redaction_module
from dissector.redaction.redaction import Redaction
from dissector.redaction.windows.window_redactor import WindowRedactor
from tests import corpus

NAMES = (
    "kafka4-librdkafka-codecs.pcap",
    "kafka39-sweep-data.pcap",
    "kafka44-sweep-new.pcap",
    "kafka39-librdkafka-transactions.pcap",
    "kafka39-kafka-python-as-0.9.pcap",
    "kafka4-librdkafka-sasl.pcap",
    "librdkafka-produce-shapes.pcap",
)
"""Each kind of message, codec and batch; damage, logins, and names by topic ids."""

KEPT = frozenset((ValueKind.TOPIC, ValueKind.PRODUCER_ID, ValueKind.METADATA))


@pytest.mark.parametrize("kept", [frozenset(), KEPT], ids=["all", "some"])
@pytest.mark.parametrize("name", NAMES)
def test_columns_and_objects_give_the_same_bytes(
    name: str, kept: frozenset[ValueKind], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_columns, done = _streams(name, kept, True, monkeypatch)
    as_objects, none = _streams(name, kept, False, monkeypatch)
    assert in_columns == as_objects
    assert done > 0
    assert not none


def _streams(
    name: str, kept: frozenset[ValueKind], in_columns: bool, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[object], int]:
    """Return the replaced messages and the pseudonyms; and how many were made in columns."""
    found: list[object] = []
    capture, done = Capture([corpus.FOLDER / name]), 0
    # Of all messages the names of topic ids are known: objects learn them one after the other.
    list(capture.parts())
    known, capture = capture.names, Capture([corpus.FOLDER / name])
    monkeypatch.setattr(redaction_module, "is_bulk_worthwhile", lambda table: in_columns)
    redact = WindowRedactor.redact

    def counting(*arguments: object) -> object:
        nonlocal done
        window = redact(*arguments)  # type: ignore[arg-type]
        done += int(window.is_done.sum())
        return window

    monkeypatch.setattr(WindowRedactor, "redact", counting)
    with closing(Redaction(b"a key of the test", kept, known, decrypts=False)) as redaction:
        for window in capture.windows():
            table = window.exchanges
            redaction.read(capture, window)
            for row in range(len(table)):
                number, client = int(table.connection[row]), int(table.client[row])
                for side, frames in ((client, table.request), (1 - client, table.response)):
                    place, size = int(frames.offset[row]), int(frames.captured_bytes[row])
                    if size >= 0:
                        found.append(redaction.stream.get(number, side, place, 4 + size))
        found += redaction.pseudonyms.replaced()
        found.append(redaction.lost_batches)
    monkeypatch.setattr(WindowRedactor, "redact", redact)
    return found, done
