"""What the loop in `pairing` does with whole frames: requests wait, responses find them."""

from __future__ import annotations

from typing import Any

from dissector.capture.columns import NEVER
from dissector.engine.correlation.frame_checks_kernel import NOT_DUE
from dissector.engine.correlation.linked_lists import FOREMOST, UNFOUND, free, new_node
from dissector.engine.correlation.open_requests import MAX_SUPPRESSED
from dissector.engine.correlation.state_columns import (
    ASKED,
    BYTES,
    CLIENT,
    COUNT,
    FAR,
    FIRST,
    FRAME_WIDTH,
    ID,
    KEY,
    LAST,
    LENGTH,
    MARKS,
    MOST_OPEN,
    MOST_OPEN_BYTES,
    NEXT,
    NOW,
    PACKET,
    ROW_CLIENT,
    ROW_CONNECTION,
    ROW_ID,
    ROW_KEY,
    ROW_REQUEST,
    ROW_RESPONSE,
    ROW_STATUS,
    ROW_TOKEN,
    ROW_UNASKED,
    ROWS,
    START,
    TELLERS,
    TOLD,
    WAIVED,
    WAIVED_COUNT,
    WINDOW,
)
from dissector.engine.tables.exchange_table import ANSWERED, NO_RESPONSE, NONE, ORPHAN, UNANSWERED
from dissector.kernel import device_function


@device_function
def ask(
    numbers: Any,
    talks: Any,
    nodes: Any,
    rows: Any,
    tellers: Any,
    talk: int,
    node: int,
    due: int,
) -> None:
    """Let a request wait, or tell it if no response is due."""
    number = nodes[node, ID]
    if talks[talk, ASKED] == NEVER or talks[talk, ASKED] < number:
        talks[talk, ASKED] = number
    if due == NOT_DUE:
        tell(numbers, talks, nodes, rows, tellers, talk, NO_RESPONSE, node)
        free(numbers, nodes, node)
        waive(numbers, talks, nodes, talk, number)
        return
    if talks[talk, LAST] < 0:
        talks[talk, FIRST] = node
    else:
        nodes[talks[talk, LAST], NEXT] = node
    talks[talk, LAST] = node
    talks[talk, COUNT] += 1
    talks[talk, BYTES] += nodes[node, LENGTH]
    while talks[talk, COUNT] > numbers[MOST_OPEN] or (
        talks[talk, BYTES] > numbers[MOST_OPEN_BYTES] and talks[talk, COUNT] > 1
    ):
        drop_oldest(numbers, talks, nodes, rows, tellers, talk)


@device_function
def waive(numbers: Any, talks: Any, nodes: Any, talk: int, number: int) -> None:
    """Remember the id of a request that is due no response; the chain is closed to a ring."""
    newest = talks[talk, WAIVED]
    if talks[talk, WAIVED_COUNT] == MAX_SUPPRESSED:
        node = nodes[newest, NEXT]
    else:
        node = new_node(numbers, nodes)
        nodes[node, START] = FAR
        nodes[node, LENGTH] = 0
        nodes[node, PACKET] = NEVER
        nodes[node, NEXT] = node if newest < 0 else nodes[newest, NEXT]
        if newest >= 0:
            nodes[newest, NEXT] = node
        talks[talk, WAIVED_COUNT] += 1
    nodes[node, ID] = number
    talks[talk, WAIVED] = node


@device_function
def answer(
    numbers: Any,
    talks: Any,
    nodes: Any,
    rows: Any,
    tellers: Any,
    talk: int,
    previous: int,
    number: int,
) -> int:
    """
    Begin to tell a response: with its request, or as an orphan.

    Args:
        numbers: See `talks`, as for the other tables.
        talks: The same.
        nodes: The same.
        rows: The same.
        tellers: The same.
        talk: The connection.
        previous: The node before the request's.
        number: Its id.

    Returns:
        The row in which the columns of the response are wanted.
    """
    if previous == UNFOUND:
        row = tell(numbers, talks, nodes, rows, tellers, talk, ORPHAN, -1)
        rows[ROW_ID, row] = number
        return row
    request = talks[talk, FIRST] if previous == FOREMOST else nodes[previous, NEXT]
    row = tell(numbers, talks, nodes, rows, tellers, talk, ANSWERED, request)
    unlink(numbers, talks, nodes, talk, request, previous)
    return row


@device_function
def end(numbers: Any, talks: Any, nodes: Any, rows: Any, tellers: Any, talk: int) -> None:
    """End a connection: what waits is unanswered."""
    while talks[talk, COUNT] > 0:
        drop_oldest(numbers, talks, nodes, rows, tellers, talk)
    talks[talk, NOW] = 0
    while talks[talk, WAIVED_COUNT] > 0:
        node = talks[talk, WAIVED]
        talks[talk, WAIVED] = nodes[node, NEXT]
        talks[talk, WAIVED_COUNT] -= 1
        free(numbers, nodes, node)
    talks[talk, WAIVED] = -1


@device_function
def drop_oldest(numbers: Any, talks: Any, nodes: Any, rows: Any, tellers: Any, talk: int) -> None:
    """Tell the request that waits longest as unanswered."""
    node = talks[talk, FIRST]
    tell(numbers, talks, nodes, rows, tellers, talk, UNANSWERED, node)
    unlink(numbers, talks, nodes, talk, node, FOREMOST)


@device_function
def unlink(numbers: Any, talks: Any, nodes: Any, talk: int, node: int, previous: int) -> None:
    """Take a request out of those that wait."""
    after = nodes[node, NEXT]
    if previous == FOREMOST:
        talks[talk, FIRST] = after
    else:
        nodes[previous, NEXT] = after
    if after < 0:
        talks[talk, LAST] = -1 if previous == FOREMOST else previous
    talks[talk, COUNT] -= 1
    talks[talk, BYTES] -= nodes[node, LENGTH]
    free(numbers, nodes, node)


@device_function
def tell(
    numbers: Any,
    talks: Any,
    nodes: Any,
    rows: Any,
    tellers: Any,
    talk: int,
    status: int,
    node: int,
) -> int:
    """Write an exchange with its request, if a node has that; return its row."""
    row = int(numbers[ROWS])
    numbers[ROWS] = row + 1
    rows[ROW_CONNECTION, row] = talk
    rows[ROW_STATUS, row] = status
    rows[ROW_CLIENT, row] = talks[talk, CLIENT]
    rows[ROW_TOKEN, row] = 0
    rows[ROW_UNASKED, row] = 0
    for j in range(FRAME_WIDTH):
        rows[ROW_RESPONSE + j, row] = NONE
        rows[ROW_REQUEST + j, row] = NONE if node < 0 else nodes[node, START + j]
    for j in range(3):
        rows[ROW_KEY + j, row] = NONE if node < 0 else nodes[node, KEY + j]
    if node >= 0:
        rows[ROW_REQUEST, row] = told_address(nodes[node, START], numbers[WINDOW])
    if not talks[talk, MARKS] & TOLD:
        talks[talk, MARKS] |= TOLD
        tellers[numbers[TELLERS]] = talk
        numbers[TELLERS] += 1
    return row


@device_function
def told_address(address: int, window: int) -> int:
    """Return an address as `Frames.start` has it."""
    return address if address < FAR else address - FAR + window
