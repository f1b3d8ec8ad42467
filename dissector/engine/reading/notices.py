"""Lines for stderr about a capture that has been read: what it lacks, repeats, or mixes up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from dissector.capture.columns import Int64s
from dissector.capture.packets.link_layers import link_name
from dissector.capture.tcp.connections import Connection
from dissector.engine.reading.reader import Reading
from dissector.engine.reading.similar_connections import carried, similar_connections
from dissector.engine.reading.spoken import mismatches_among

_MAX_NOTICES, _MAX_SERVERS = 5, 3


def reading_notices(reading: Reading) -> Iterator[str]:
    """Yield what was not read or not captured, and clients of another protocol than the server."""
    for link, count in sorted(reading.source.unread_links.items()):
        packets = f"{count:,} packet{'s' * (count != 1)}"
        yield f"{packets} of link type {link_name(link)}, which is not read"
    differing: list[tuple[Connection, str]] = []
    one_sided: list[tuple[int, int]] = []
    large: list[Int64s] = []
    connections = reading.streams.connections
    for numbers in connections.parts():  # each is unpacked once
        columns = connections.columns(numbers)
        rows = np.flatnonzero(columns.missing_side >= 0)
        one_sided += zip(numbers[rows].tolist(), columns.missing_side[rows].tolist(), strict=True)
        large.append(carried(columns))
        differing += mismatches_among(reading, numbers)
    differing.sort(key=lambda each: each[0].id)
    yield from _mismatch_notices(reading, differing)
    yield from _one_sided_notices(reading, sorted(one_sided))
    yield from _copy_notices(reading)
    yield from _similar_notices(reading, large)


def unnamed_topics(count: int) -> str:
    """Return a line about topics whose ids no message of the capture names."""
    what = "topic is shown by its id: no message names it"
    if count != 1:
        what = "topics are shown by their ids: no message names them"
    return f"{count:,} {what}; --topic-names FILE|HOST:PORT does (docs/live.md)"


def _mismatch_notices(reading: Reading, found: list[tuple[Connection, str]]) -> Iterator[str]:
    """Yield a line for each server and difference, the most frequent first."""
    counts = Counter[tuple[str, str]]()
    for connection, text in found:
        state = reading.correlator.state_of(connection.id)
        server = connection.a_text if state is not None and state.client == 1 else connection.b_text
        counts[server, text] += 1
    for (server, text), count in counts.most_common(_MAX_NOTICES):
        yield f"{count:,} connection{'s' * (count != 1)} to {server}: {text}"
    more = len(counts) - _MAX_NOTICES
    if more > 0:
        yield f"{more:,} more servers with clients of another protocol"


def _one_sided_notices(reading: Reading, found: list[tuple[int, int]]) -> Iterator[str]:
    """Yield a line for each server with connections of one direction, the most frequent first."""
    connections = reading.streams.connections
    counts = Counter[tuple[str, str]]()
    for number, missing in found:
        state = reading.correlator.state_of(number)
        if state is None or state.speaks not in ("kafka", "tls"):
            continue
        server = 0 if state.client == 1 else 1
        side = "server" if missing == server else "client"
        connection = connections[number]
        counts[connection.a_text if server == 0 else connection.b_text, side] += 1
    for (address, lacking), count in counts.most_common(_MAX_SERVERS):
        what = "connection" if count == 1 else "connections"
        yield (
            f"{count:,} {what} to {address} without the packets of the {lacking}: "
            "the capture has one direction only"
        )
    if len(counts) > _MAX_SERVERS:
        yield f"{len(counts) - _MAX_SERVERS:,} more servers with one direction only"


def _copy_notices(reading: Reading) -> Iterator[str]:
    """Yield a line if the capture holds connections twice."""
    count = reading.copies.count if reading.copies is not None else 0
    if count:
        what = "connection is a copy" if count == 1 else "connections are copies"
        yield (
            f"{count:,} {what} of others, as before and behind a NAT or in two networks: "
            "counted once (--keep-copies: each)"
        )


def _similar_notices(reading: Reading, parts: list[Int64s]) -> Iterator[str]:
    """Yield a line if connections are alike, which may be before and behind a proxy."""
    count = 0 if reading.options.keep_copies else similar_connections(reading, parts)
    if count:
        what = "connection carries" if count == 1 else "connections carry"
        yield (
            f"{count:,} {what} as many bytes at the same times as another one, as before and "
            "behind a proxy or sidecar: each is counted; -Y or --port choose a side"
        )
