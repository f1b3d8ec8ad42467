"""Details of connections and events, and the menu of a field."""

from __future__ import annotations

import pytest

from browse.app.choice_screen import ChoiceScreen
from browse.detail import DetailPanes
from browse.detail.field_tree import FieldTree
from tests.browse.screens import Screen, play, screen


async def choose(each: Screen, name: str, value: object) -> None:
    """Choose the first row with a value in a column, and wait for its details."""
    parts = each.app.session.shown.parts
    row = next(at for at in range(len(parts)) if parts.value(at, name) == value)
    each.app.rows.choose(each.app.session.shown.place_of(row) or 0)
    title = {"connection": f"connection: {value}:", "event": f"event: {value} of"}[name]
    await each.until(lambda: title in each.text)


def line_of(tree: FieldTree, begin: str) -> int:
    """Return the number of the line whose label begins with a text."""
    found = (
        number for number in range(tree.last_line + 1) if label_of(tree, number).startswith(begin)
    )
    return next(found)


def label_of(tree: FieldTree, number: int) -> str:
    line = tree.get_node_at_line(number)
    return "" if line is None else str(line.label)


@pytest.mark.long
def test_connections_and_events_have_details() -> None:
    async def scene() -> None:
        async with screen(details=DetailPanes(), size=(120, 60)) as each:
            tree = each.app.query_one(FieldTree)
            await each.press("4")
            await choose(each, "connection", 9)
            parts = each.app.session.loading.parts
            rows = [parts.row(row) for row in range(len(parts))]
            apis = [row["api"] for row in rows if row["connection"] == 9]
            assert f"exchanges: {len(apis)}" in each.text
            assert f"JoinGroup: {apis.count('JoinGroup')}" in each.text
            await each.press("5")
            await choose(each, "event", "rebalance")
            assert "evidence: " in each.text
            tree.focus()
            tree.cursor_line = line_of(tree, "packets ")
            packet = int(label_of(tree, tree.cursor_line).split()[1].replace(",", ""))
            await each.press("enter")
            assert each.app.session.mode.name == "exchanges"
            assert each.app.rows.chosen is not None
            assert parts.value(each.app.rows.chosen, "request_packet") == packet
            assert each.app.focused is each.app.rows

    play(scene)


def test_a_right_click_opens_the_menu_of_a_field() -> None:
    async def scene() -> None:
        async with screen(details=DetailPanes(), size=(120, 60)) as each:
            tree = each.app.query_one(FieldTree)
            await each.until(lambda: tree.last_line > 0)
            tree.go_to(tree.root.children[0])
            await each.press("tab", "right")
            line = line_of(tree, "broker: ")
            await each.click(FieldTree, offset=(6, line - tree.scroll_offset.y), button=3)
            await each.until(lambda: isinstance(each.app.screen, ChoiceScreen))
            await each.pilot.pause()
            assert "Filter by this field  (=)" in each.text
            await each.press("enter")
            await each.until(lambda: each.app.bar.text.startswith("broker == "))

    play(scene)
