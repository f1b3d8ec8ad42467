"""Connections moved from object to table and back are unchanged."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from dissector.engine.correlation.both_paths.correlator_rows import KAFKA, UNRECOGNISED
from dissector.engine.correlation.correlator import Correlator
from dissector.engine.correlation.objects.connection_correlator import ConnectionCorrelator
from dissector.engine.correlation.objects.framer import Framer
from tests.dissector.engine.chunks import Chunk, captures, columns, connections
from tests.example_counts import examples


def state(connection: ConnectionCorrelator) -> tuple[Any, ...]:
    """Return all state that later processing depends on."""
    requests = connection.open_requests
    return (
        connection.speaks,
        connection.client,
        connection.start_captured,
        connection.highest_id,
        connection.now_ns,
        connection.needs_slow_path,
        [
            each._replace(number=0, frame=each.frame._replace(entry=-1))
            for each in requests.oldest_first()
        ],
        [requests.oldest(number).frame._replace(entry=-1) for number in sorted(requests.ids())],
        [[frame._replace(entry=-1) for frame in frames] for frames in connection.ready_frames],
        requests.total_bytes,
        (requests.suppressed.count, requests.suppressed.ring.tolist()),
        requests.tokens_seen,
        [side(stream) for stream in connection.streams],
    )


def side(stream: Framer) -> tuple[Any, ...]:
    return (
        stream.base,
        bytes(stream.buffer),
        stream.packet_ends,
        stream.end,
        stream.last_packet,
        stream.at_packet_start,
        stream.in_sync,
        stream.validate.__name__ if stream.in_sync else None,
        None if stream.in_sync else stream.scanned,
        stream.damaged and stream.damaged.bytes_left,
        stream.damaged_frames,
        stream.skipped,
        stream.missing,
        stream.tried_bytes,
        stream.checked_bytes,
        stream.entered,
    )


@given(captures())
@settings(deadline=None, max_examples=examples(150))
def test_a_demoted_connection_equals_one_never_promoted(
    drawn: tuple[list[Chunk], list[bool]],
) -> None:
    chunks, whole = drawn
    folds = [Correlator(connections(whole), use_fast_path=by_rules) for by_rules in (True, False)]
    fold, truth = folds
    for chunk in chunks:
        for each in folds:
            each.feed(columns([chunk]))
    in_flight = 0
    for number, connection in truth.slow_path.correlators.items():
        if number in fold.slow_path.correlators:
            assert state(fold.slow_path.correlators[number]) == state(connection)
        elif fold.tables.connection_rows[number].mode in (UNRECOGNISED, KAFKA):
            assert state(fold.slow_path.promote(number)) == state(connection)
    for correlator in fold.slow_path.correlators.values():
        requests = (each.frame for each in correlator.open_requests.oldest_first())
        frames = [*requests, *(frame for ready in correlator.ready_frames for frame in ready)]
        in_flight += sum(len(frame.data) for frame in frames if frame.entry >= 0)
    assert fold.tables.entries["length"].sum() == in_flight
