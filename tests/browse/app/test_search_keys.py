"""Keys for search and following: packets, marks, searches, connections, groups."""

from __future__ import annotations

import pytest

from tests.browse.screens import Screen, play, screen


async def answer_question(each: Screen, *keys: str, text: str = "") -> None:
    """Press a key that opens a question, and answer it."""
    await each.pilot.press(keys[0])
    await each.until(lambda: len(each.app.screen_stack) > 1)
    await each.pilot.pause()
    await each.type(text)
    await each.press(*keys[1:])


@pytest.mark.long
def test_go_to_a_packet() -> None:
    async def scene() -> None:
        async with screen() as each:
            await answer_question(each, "g", "enter", text="121")
            assert each.app.session.shown.parts.value(each.app.rows.chosen, "request_packet") == 121
            each.app.go_to_packet(122)  # the response
            assert each.app.session.shown.parts.value(each.app.rows.chosen, "request_packet") == 121
            each.app.go_to_packet(1)
            assert each.app.rows.cursor == 0
            assert "has no row" in each.app.status.notice
            each.app.go_to_packet(10**9)
            assert each.app.rows.cursor == 280
            await answer_question(each, "g", "enter", text="x1")
            assert "not a packet number" in each.app.status.notice
            assert each.app.rows.cursor == 280

    play(scene)


@pytest.mark.long
def test_marks() -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.press("down", "down")
            await answer_question(each, "m", "a")
            assert each.lines[5].startswith("a ")
            await each.press("end")
            await answer_question(each, "apostrophe", "a")
            assert each.app.rows.cursor == 2
            await answer_question(each, "apostrophe", "apostrophe")
            assert each.app.rows.cursor == 280
            await answer_question(each, "apostrophe", "z")
            assert "no row has the mark z" in each.app.status.notice
            await answer_question(each, "apostrophe", "escape")
            assert each.app.rows.cursor == 280

    play(scene)


@pytest.mark.long
def test_a_search_in_cells() -> None:
    async def scene() -> None:
        async with screen() as each:
            await answer_question(each, "ctrl+f", "enter", text="member_id_req")
            value = each.app.session.shown.parts.value
            assert value(each.app.rows.chosen, "errors") == ["MEMBER_ID_REQUIRED"]
            first = each.app.rows.cursor
            await each.press("n")
            assert each.app.rows.cursor > first
            await each.press("n")
            assert each.app.rows.cursor == first, "wraps around at the end"
            await each.press("N")
            assert each.app.rows.cursor > first
            each.app.search("re:^Join")
            await each.settle()
            assert value(each.app.rows.chosen, "api") == "JoinGroup"
            each.app.search("nowhere at all")
            await each.settle()
            assert "not found" in each.app.status.notice

    play(scene)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("text", ["bytes:LAMP", "hex:6c 61 6d 70", "field:request.topic_data"])
def test_a_search_in_messages(text: str) -> None:
    async def scene() -> None:
        async with screen() as each:
            each.app.search(text)
            await each.settle()
            await each.until(lambda: each.app.rows.cursor > 0)
            value = each.app.session.shown.parts.value
            assert value(each.app.rows.chosen, "api") in ("Produce", "Fetch")
            assert len(each.app.session.shown) == 281

    play(scene)


def test_a_search_in_keys_and_values_of_records() -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.press("3")
            value = each.app.session.shown.parts.value
            await answer_question(each, "ctrl+f", "enter", text="lamp")
            assert b"lamp" in value(each.app.rows.chosen, "value")
            places = each.app.status.notice
            assert "of" in places
            each.app.search("re:^nothing of this kind$")
            await each.settle()
            assert "not found" in each.app.status.notice

    play(scene)


def test_invalid_searches() -> None:
    async def scene() -> None:
        async with screen() as each:
            for text, message in {
                "re:(": "not a regular expression",
                "hex:xx": "is not hex",
                "field:nonsense": "invalid filter",
            }.items():
                each.app.search(text)
                assert message in each.app.status.notice
            await each.press("2")
            each.app.search("hex:00")
            assert "key 1" in each.app.status.notice

    play(scene)


@pytest.mark.long
def test_follow_and_come_back() -> None:
    async def scene() -> None:
        async with screen() as each:
            each.app.go_to_packet(121)
            row = each.app.rows.chosen
            await answer_question(each, "f", "enter")
            shown = each.app.session.shown
            connection = shown.parts.value(row, "connection")
            assert {shown.parts.value(at, "connection") for at in shown.numbers().tolist()} == {
                connection
            }
            assert each.app.rows.chosen == row, "the exchange stays selected"
            assert each.lines[0] == f"all > connection {connection}"
            await answer_question(each, "f", "down", "enter")
            assert len(each.app.session.shown) == 1
            assert each.lines[0].count(">") == 2
            await each.press("escape")
            assert each.lines[0] == f"all > connection {connection}"
            await each.press("escape")
            assert len(each.app.session.shown) == 281
            assert each.app.rows.chosen == row

    play(scene)
