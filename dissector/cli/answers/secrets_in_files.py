"""The command `kafkashark secrets`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from dissector.capture.formats.capture_reader import read_tls_secrets
from dissector.cli import capture_source
from dissector.cli.declared.answer_options import SecretPlaceOptions
from dissector.cli.output import write_lines
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_records import record_rows
from dissector.engine.reading.capture import Window
from dissector.engine.tables.column_types import Row
from dissector.protocol.embedded.masking import is_secret_topic
from dissector.redaction.redacted_mark import is_redacted
from dissector.redaction.secret_places import SecretPlace, SecretPlaces
from dissector.view.json.body import mask_record_row
from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text


class _Found(NamedTuple):
    """A kind of secret in a file: the first place, and the number of messages with it."""

    file: str
    place: SecretPlace | None
    messages: int

    def line(self) -> str:
        """Return it in one line; without a place it is a key log in the file."""
        if self.place is None:
            return escaped(f"{self.file}: TLS secrets, which open the connections of the capture")
        packet, api, kind, field, size = self.place
        more = f", {self.messages:,} in all" if self.messages > 1 else ""
        length = "1 byte" if size == 1 else f"{size:,} bytes"
        place = f"{self.file}: packet {packet}: {api} {kind}, {field}"
        return escaped(f"{place}: a secret of {length}{more}")

    def row(self) -> dict[str, object]:
        """Return it as a JSON object."""
        fields = {"field": "TLS secrets"} if self.place is None else self.place._asdict()
        return {"capture": self.file, **fields, "messages": self.messages}


def secrets(given: SecretPlaceOptions) -> int:
    """Print where captures hold secrets."""
    found = [each for name in given.captures for each in _in_file(name, given)]
    if given.form == "ndjson":
        write_lines((json_text(each.row()) for each in found), given.output)
    else:
        write_lines((each.line() for each in found), given.output)
    if not found:
        return 0
    files = len({each.file for each in found})
    cure = "kafkashark export CAPTURE --redact -o OUT.pcapng writes one without"
    counted = f"{files:,} of {len(given.captures):,} captures with secrets"
    print(f"kafkashark: {counted}; {cure}", file=sys.stderr)
    return 1


def _in_file(name: str, given: SecretPlaceOptions) -> Iterator[_Found]:
    """Yield the secrets of a file, each kind once; a redacted file has none."""
    if name != "-":
        if is_redacted(name):
            return
        if count := sum(1 for _ in read_tls_secrets([name])):
            yield _Found(name, None, count)
    source = capture_source.source(given.replace(captures=(name,)))
    finder = SecretPlaces(source.capture)
    found: dict[tuple[str, str, str], _Found] = {}
    for window in source.each_window():
        places = finder.places(source.selection.exchange_table(window))
        for place in chain(places, _in_records(source, window)):
            kind = place.api, place.kind, place.field
            first = found.get(kind, _Found(name, place, 0))
            found[kind] = first._replace(messages=first.messages + 1)
        del window  # frees its memory before the next window is read
    yield from found.values()


def _in_records(source: capture_source.Source, window: Window) -> list[SecretPlace]:
    """Return the secrets in records of Kafka's own topics and of Connect's settings."""
    found: list[SecretPlace] = []

    def rows(exchange: Exchange) -> Iterator[Row]:
        for row in record_rows(exchange):
            value, topic = row["value"], row["topic"]
            if value and topic is not None and is_secret_topic(topic):
                mask_record_row(topic, row)
                if row["value"] != value:
                    kind = "request" if row["api"] == "Produce" else "response"
                    field = f"record of {topic}"
                    place = SecretPlace(row["packet"], row["api"], kind, field, len(value))
                    found.append(place)
        yield from ()

    for _ in source.selection.record_parts(window, is_secret_topic, rows):
        pass  # records of other topics hold no secrets
    return found
