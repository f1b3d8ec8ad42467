"""
Names of topic ids from what a user names: a list, a capture, a broker.

Source: KIP-516: Metadata responses from version 10 on have names and ids of topics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias
from uuid import UUID

from dissector.engine.facts.given_names import listed_names
from dissector.engine.reading.capture import Capture, Options
from dissector.errors import CaptureError, UsageError
from dissector.query.answers_above import answer_above

NameSource: TypeAlias = str | Path
"""A file, or the `host:port` of a broker."""

_BROKER = re.compile(r"(\[[^\]]+\]|[^:/\\]+):\d+")
_MOST_LIST_BYTES = 1 << 26
"""A list of a million topics is not larger; larger files are captures."""

_FORMS = "`kafka-topics.sh --describe` prints them, HOST:PORT asks a broker (kcat -L prints none)"


def is_broker(source: str) -> bool:
    """Return whether a source is the address of a broker, not a file."""
    return _BROKER.fullmatch(source) is not None and not Path(source).exists()


def named_file(source: str) -> str:
    """Return the file of a source; empty for a broker."""
    return "" if is_broker(source) else source


def names_of(sources: Iterable[NameSource]) -> dict[UUID, str]:
    """
    Return the names of topic ids from several sources; the first of an id counts.

    Raises:
        CaptureError: A file can't be read.
        DissectorError: A broker can't be asked.
        UsageError: A source names no topic ids.
    """
    names: dict[UUID, str] = {}
    for source in map(str, sources):
        found = _names_of_broker(source) if is_broker(source) else _names_of_file(source)
        names = {**found, **names}
    return names


def _names_of_broker(address: str) -> Mapping[UUID, str]:
    names: Mapping[UUID, str] = answer_above("topic_names")(address)
    if not names:
        raise UsageError(f"{address} has no topics with ids: Kafka has them since 2.8")
    return names


def _names_of_file(name: str) -> Mapping[UUID, str]:
    """Return the names in a list, or else in the messages of a capture or a request log."""
    try:
        with Path(name).open("rb") as file:
            data = file.read(_MOST_LIST_BYTES + 1)
    except OSError as error:
        raise CaptureError(name, error.strerror or str(error)) from None
    if len(data) <= _MOST_LIST_BYTES and b"\0" not in data:
        names = listed_names(data.decode(errors="replace"))
        if names:
            return names
    try:
        names = Capture([name], Options(topic_names={})).read_names()
    except CaptureError:
        names = {}
    if not names:
        raise UsageError(f"{name}: no names of topic ids in it; {_FORMS}")
    return names
