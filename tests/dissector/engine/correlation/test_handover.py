"""A conversation that goes from object to table and back is the same."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from dissector.engine.correlation.connection_correlator import Conversation
from dissector.engine.correlation.connection_dispatcher import Conversations
from dissector.engine.correlation.framer import Stream
from dissector.engine.correlation.state_columns import KAFKA, MODE
from tests.dissector.engine.chunks import Chunk, captures, columns, connections
from tests.examples import examples


def state(talk: Conversation) -> tuple[Any, ...]:
    """Return all that what comes next may depend on."""
    requests = talk.open_requests
    return (
        talk.speaks,
        talk.client,
        talk.whole,
        talk.asked,
        talk.now_ns,
        talk.is_busy,
        [open_request[1:] for open_request in requests.waiting()],
        [requests.oldest(number).frame for number in sorted(requests.ids())],
        requests.size,
        requests.waived_ids(),
        requests.tokens_seen,
        [side(stream) for stream in talk.streams],
    )


def side(stream: Stream) -> tuple[Any, ...]:
    return (
        stream.base,
        bytes(stream.buffer),
        stream.marks,
        stream.end,
        stream.last_packet,
        stream.fresh,
        stream.in_step,
        stream.judge.__name__ if stream.in_step else None,
        None if stream.in_step else stream.scanned,
        stream.cut and stream.cut.left,
        stream.done,
        stream.skipped,
        stream.missing,
        stream.tried,
        stream.weighed,
        stream.entered,
    )


@given(captures())
@settings(deadline=None, max_examples=examples(150))
def test_what_comes_back_is_what_would_have_been(drawn: tuple[list[Chunk], list[bool]]) -> None:
    chunks, whole = drawn
    folds = [Conversations(connections(whole), by_rules=by_rules) for by_rules in (True, False)]
    fold, truth = folds
    for chunk in chunks:
        for each in folds:
            each.feed(columns([chunk]))
    for number, talk in truth._objects.all.items():
        if number in fold._objects.all:
            assert state(fold._objects.all[number]) == state(talk)
        elif fold._tables.talks[number, MODE] == KAFKA:
            assert state(fold._objects.fetch(number)) == state(talk)
    assert fold._tables.nodes[:, 2].sum() == 0
