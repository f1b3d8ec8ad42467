"""
What a table wants to know of its exchanges, read off the tape for a whole window at once.

Most exchanges are whole, of known APIs, and nothing is wrong with them. Their header, errors and
topics are read by one loop (`tape`), without decoding their bodies. The others are left to the
codecs, which know what is wrong: those that the loop can't read to the last byte, those whose
records have problems, and those that tell the names of topic ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.engine import tape
from dissector.engine.exchanges import NONE, Exchanges, Ints
from dissector.engine.topics import may_tell_names
from dissector.protocol.carried import may_be_cut
from dissector.protocol.error_codes import error_name
from dissector.protocol.facts import NO_ID
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION
from dissector.protocol.program import Place, programs
from dissector.protocol.records import parse_records

WORTHWHILE = 3000
"""
Exchanges in a window from which it pays to load compiled code and read them all at once.
"""

LEAST_REQUEST, LEAST_RESPONSE = 10, 4
"""Bytes of a request's header up to its client id, and of a response's."""

NOTHING, CLIENT_ID, ERROR, TOPIC, TOPIC_ID, RECORDS = range(6)

Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]


class Known(NamedTuple):
    """
    What the bytes of an exchange say, where nothing is wrong with them.

    Attributes:
        api_key: Of the request.
        api_version: Of the request.
        correlation_id: Of the request.
        client_id: Of the request.
        errors: Names of the errors in the response, each once, in wire order.
        topics: Names and ids of the topics of both, likewise.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    errors: tuple[str, ...]
    topics: tuple[str | UUID, ...]


@dataclass(slots=True)
class _Found:
    """The same while it is collected; as keys, so that each is there once."""

    fits: bool
    client_id: str | None = None
    errors: dict[str, None] = field(default_factory=dict)
    topics: dict[str | UUID, None] = field(default_factory=dict)


def known(table: Exchanges) -> list[Known | None]:
    """Return what is known of each exchange of a window; None for those left to the codecs."""
    out: list[Known | None] = [None] * len(table)
    if len(table) < WORTHWHILE:
        return out
    data = np.frombuffer(table.data, np.uint8)
    rows = np.flatnonzero(_whole(table))
    rows, keys, versions, steps = _programs(data, table, rows)
    if not len(rows):
        return out
    read = _read(data, table, rows, steps)
    ids = _number(data, table.request.start[rows] + 4, 4)
    found = _collect(table.data, read, len(rows))
    columns = (rows.tolist(), keys.tolist(), versions.tolist(), ids.tolist(), found)
    for row, key, version, correlation_id, each in zip(*columns, strict=True):
        if each.fits:
            out[row] = Known(
                key,
                version,
                correlation_id,
                each.client_id,
                tuple(each.errors),
                tuple(each.topics),
            )
    return out


def _whole(table: Exchanges) -> Bools:
    """Tell which exchanges have a request, and no frame that lacks bytes."""
    request, response = table.request, table.response
    there = request.start != NONE
    answered = response.start != NONE
    whole: Bools = (
        there
        & ~table.token
        & ~table.unasked
        & (request.there == request.size)
        & (request.size >= LEAST_REQUEST)
        & (~answered | ((response.there == response.size) & (response.size >= LEAST_RESPONSE)))
    )
    return whole


def _programs(data: Bytes, table: Exchanges, rows: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the rows that have programs, their keys and versions, and the steps [n, 2] of both."""
    begin = table.request.start[rows]
    keys, versions = _number(data, begin, 2), _number(data, begin + 2, 2)
    kinds, which = np.unique(keys << 32 | (versions & 0xFFFFFFFF), return_inverse=True)
    starts = np.array([_starts(int(kind) >> 32, int(kind & 0xFFFFFFFF)) for kind in kinds])
    steps = starts.reshape(-1, 2)[which]
    answered = table.response.start[rows] != NONE
    good = steps[:, 0] >= 0
    refused = np.flatnonzero(answered & (keys == API_VERSIONS) & (table.response.size[rows] >= 6))
    codes = _number(data, table.response.start[rows[refused]] + 4, 2)
    good[refused[codes == UNSUPPORTED_VERSION]] = False
    steps[~answered, 1] = -1
    return rows[good], keys[good], versions[good], steps[good]


def _starts(key: int, version: int) -> tuple[int, int]:
    """Return the first steps of request and response; -1 for what is left to the codecs."""
    version = version - (1 << 32) if version >> 31 else version
    if may_tell_names(key, version):
        return -1, -1
    table = programs()
    return table.start(key, version, "request"), table.start(key, version, "response")


def _number(data: Bytes, at: Ints, size: int) -> Ints:
    """Read big-endian signed numbers of some bytes."""
    value = data[at].astype(np.int8).astype(np.int64)
    for i in range(1, size):
        value = value << 8 | data[at + i]
    return value


def _read(data: Bytes, table: Exchanges, rows: Ints, steps: Ints) -> tape.Tape:
    """Run request and response of each row through their programs: messages 2n and 2n + 1."""
    starts, ends = (np.zeros((len(rows), 2), np.int64) for _ in range(2))
    for side, frames in enumerate((table.request, table.response)):
        there = frames.start[rows] != NONE
        starts[:, side] = np.where(there, frames.start[rows], 0)
        ends[:, side] = starts[:, side] + np.where(there, frames.size[rows], 0)
    return tape.read(data, starts.ravel(), ends.ravel(), steps.ravel(), programs(), _categories())


def _categories() -> Bytes:
    """Return for each field number what it tells, if anything."""
    return np.array([_category(place) for place in programs().places], np.uint8)


def _category(place: Place | None) -> int:
    if place is None:
        return NOTHING
    declared = place.declared
    is_item = place.path.endswith(".[]")
    if place.key < 0:
        return CLIENT_ID if declared.name == "client_id" else NOTHING
    if declared.type == "int16" and declared.name.endswith("error_code"):
        return ERROR if place.kind == "response" else NOTHING
    if declared.entity == "topicName" and (is_item or not declared.type.startswith("[]")):
        return TOPIC
    if declared.type == "uuid" and declared.name == "topic_id":
        return TOPIC_ID
    carries = may_be_cut(place.key, place.kind) is not None
    return RECORDS if carries and declared.name == "records" else NOTHING


def _collect(data: bytes, read: tape.Tape, count: int) -> list[_Found]:
    """Gather the rows of the tape by exchange."""
    answered = read.state.reshape(-1, 2)
    fits = (answered[:, 0] == tape.FITS) & np.isin(answered[:, 1], (tape.FITS, tape.UNKNOWN))
    found = [_Found(fit) for fit in fits.tolist()]
    category = _categories()[read.field]
    empty_text = (category == CLIENT_ID) & (read.value == 0)
    telling = np.flatnonzero(
        (read.value > 0) | (category == ERROR) & (read.value != 0) | empty_text
    )
    texts: dict[bytes, str] = {}
    columns = (
        read.message[telling].tolist(),
        category[telling].tolist(),
        read.start[telling].tolist(),
        read.value[telling].tolist(),
        read.field[telling].tolist(),
    )
    for message, what, start, value, number in zip(*columns, strict=True):
        each = found[message >> 1]
        if what == ERROR:
            each.errors[error_name(value)] = None
            continue
        content = data[start : start + value]
        if what == RECORDS:
            each.fits = each.fits and _are_right(content, programs().places[number])
        elif what == TOPIC_ID:
            topic_id = UUID(bytes=content)
            if topic_id != NO_ID:
                each.topics[topic_id] = None
        else:
            text = texts.get(content)
            if text is None:
                text = texts[content] = content.decode("utf-8", "surrogateescape")
            if what == TOPIC:
                each.topics[text] = None
            else:
                each.client_id = text
    return found


def _are_right(content: bytes, place: Place | None) -> bool:
    """Tell whether nothing is wrong with the content of a `records` field."""
    cut = place is not None and bool(may_be_cut(place.key, place.kind))
    return not any(batch.problems for batch in parse_records(content, may_be_cut=cut))
