from __future__ import annotations

from browse.panels.conversation_panel import ConversationPanel, messages_of
from dissector.public import open_capture
from tests.browse.panels.panel_host import HOSTILE, SHOWN_HOSTILE, lines, opened, play, text
from tests.corpus import FOLDER

ROWS = [each.row() for each in open_capture(FOLDER / "demo.pcap", filter="connection == 0")]


def test_messages_are_in_packet_order() -> None:
    turns = messages_of(ROWS)
    assert [turn.packet for turn in turns] == sorted(turn.packet for turn in turns)
    assert {turn.number for turn in turns} == set(range(len(ROWS)))
    assert sum(turn.is_request for turn in turns) == len(ROWS)


def test_requests_and_responses_have_their_sides() -> None:
    async def scene() -> None:
        async with opened(ConversationPanel("a and b", ROWS), (120, 24)) as (app, pilot):
            shown = lines(app)
            assert "Conversation: a and b" in text(app)
            requests = [line for line in shown if "──▶" in line]
            responses = [line for line in shown if "◀──" in line]
            assert f"{ROWS[0]['api']} v{ROWS[0]['api_version']}" in requests[0]
            assert f"{ROWS[0]['request_bytes']:,} bytes" in requests[0]
            assert f"{ROWS[0]['latency_ms']:.3f} ms" in responses[0]
            assert responses[0].index("◀──") > requests[0].index("──▶")
            await pilot.press("down", "down", "enter")
            await pilot.pause()
            assert app.results == [messages_of(ROWS)[2].number]

    play(scene)


def test_times_begin_with_the_capture() -> None:
    async def scene() -> None:
        begin_ns = ROWS[0]["request_time_ns"] - 1_500_000_000
        async with opened(ConversationPanel("a and b", ROWS, begin_ns), (120, 24)) as (app, _):
            first = next(line for line in lines(app) if "──▶" in line)
            assert "1.500000" in first

    play(scene)


def test_an_empty_conversation() -> None:
    async def scene() -> None:
        async with opened(ConversationPanel("nobody", [])) as (app, pilot):
            assert "no messages" in text(app)
            await pilot.press("enter", "q")
            assert app.results == [None]

    play(scene)


def test_captured_text_is_escaped() -> None:
    async def scene() -> None:
        row = {**ROWS[0], "topics": [HOSTILE], "errors": [HOSTILE], "api": None}
        async with opened(ConversationPanel(HOSTILE, [row]), (200, 24)) as (app, _):
            assert text(app).count(SHOWN_HOSTILE) == 3
            assert text(app).replace("\n", "").isprintable()

    play(scene)
