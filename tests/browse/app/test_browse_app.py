"""The screen: keys, views and errors."""

from __future__ import annotations

import weakref
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Static

from browse.filtering.filter_bar import FilterInput
from dissector.public import Exchange
from tests.browse.screens import DEMO, play, screen
from timeline.public import timeline


class Details(Static, can_focus=True):
    """Panes that record the shown exchanges."""

    def __init__(self) -> None:
        super().__init__("details", id="details")
        self.shown: list[Exchange | None] = []

    def show(self, exchange: Exchange | None, *more: object) -> None:
        self.shown.append(exchange)


def test_the_list_shows_the_exchanges() -> None:
    async def scene() -> None:
        async with screen() as each:
            assert each.lines[2].split()[:5] == ["packet", "time", "client_id", "api", "v"]
            first = "4 0.000919 demo ApiVersions 3 1.133 confluent-kafka-python"
            assert " ".join(each.lines[3].split()).startswith(first)
            packets = [int(line.split()[0]) for line in each.lines[3:13]]
            assert packets == sorted(packets), "in the order of requests, not of responses"
            assert "1/281 exchanges" in each.lines[-2]
            await each.press("down", "down", "pagedown")
            assert each.app.rows.cursor > 20
            await each.press("end")
            assert each.app.rows.cursor == 280
            assert each.app.rows.is_following
            await each.press("up", "home")
            assert each.app.rows.cursor == 0
            assert not each.app.rows.is_following

    play(scene)


def test_panes() -> None:
    """Tab moves between panes; they grow, shrink, fill the screen, and swap positions."""

    async def scene() -> None:
        details = Details()
        async with screen(details=details) as each:
            rows = each.app.rows
            await each.until(lambda: bool(details.shown))
            assert details.shown[0] is not None
            assert details.shown[0].api == "ApiVersions"
            await each.press("down")
            await each.until(lambda: len(details.shown) > 1)
            assert [shown and shown.api for shown in details.shown] == ["ApiVersions", "Metadata"]
            height = rows.size.height
            await each.press("plus")
            assert rows.size.height > height
            await each.press("minus", "minus")
            assert rows.size.height < height
            await each.press("vertical_line", "vertical_line")
            assert rows.size.width < 70
            await each.press("vertical_line", "backslash")
            assert not details.display
            await each.press("backslash", "tab")
            assert details.has_focus
            await each.press("backslash")
            assert details.display
            assert not rows.display

    play(scene)


def test_a_filter_while_typing() -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.press("slash")
            bar = each.app.bar
            await each.type("api =")
            assert bar.verdict.state == "unfinished"
            await each.type("= Prod")
            assert bar.has_class("-unfinished")
            assert "api == Produce" in [line.strip() for line in each.lines]
            await each.press("tab")
            assert bar.text == "api == Produce"
            assert bar.has_class("-valid")
            await each.press("enter")
            assert "1/53 of 281 exchanges" in each.lines[-2]
            await each.filter("nonsense > 3")
            assert bar.has_class("-invalid")
            assert each.lines[1].index("^ unknown name 'nonsense'") == 2
            assert "1/53 of 281" in each.lines[-2], "an invalid filter changes nothing"
            await each.press("escape")
            assert bar.text == "api == Produce"
            await each.press("escape")
            assert "1/281 exchanges" in each.lines[-2], "back at the selected row"
            await each.press("slash", "up")
            assert bar.text == "api == Produce"
            await each.press("down")
            assert bar.text == ""

    play(scene)


def test_a_pasted_filter_of_several_lines_and_ctrl_c() -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.press("slash")
            await each.type("not ")
            line = each.app.bar.query_one(FilterInput)
            line.post_message(events.Paste("api == Produce\n  or api == Fetch\n"))
            await each.until(lambda: each.app.bar.text == "not api == Produce or api == Fetch")
            await each.press("escape", "ctrl+c")
            assert "q quits" in each.lines[-2]

    play(scene)


def test_a_filter_on_fields_reads_the_capture_again() -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.filter('request.group_id == "demo-billing" or request.group_id')
            assert "1/30 of 281 exchanges" in each.lines[-2]
            await each.filter("frame.len > 0 and frame.time_relative < 1")
            assert each.app.session.filter_text.startswith("frame.len")
            assert 0 < len(each.app.session.shown) < 281

    play(scene)


@pytest.mark.long
def test_modes_show_other_rows() -> None:
    async def scene() -> None:
        async with screen() as each:
            for key, count in {"2": "551 messages", "3": "363 records", "4": "44 conn"}.items():
                await each.press(key)
                assert f"1/{count}" in each.lines[-2]
                assert each.app.session.exchange_number(0) is not None
            await each.press("5")
            assert f"/{sum(1 for _ in timeline(DEMO))} events" in each.lines[-2]
            await each.press("1")
            await each.filter("client_id == shop")
            for key in "2345":
                await each.press(key)
                shown = each.app.session.shown
                assert len(shown) > 0
                number = each.app.session.exchange_number(shown.number(0))
                assert number is not None
                assert each.app.session.loading.parts.value(number, "client_id") == "shop"
            await each.press("M")
            await each.until(lambda: each.app.focused is not None)
            await each.press("down", "enter")
            assert each.app.session.mode.name == "messages"

    play(scene)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("key", ["3", "5"])
def test_rows_no_longer_shown_are_dropped(key: str) -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.press(key)
            shown = weakref.ref(each.app.session.shown.parts)
            assert shown() is not None
            await each.press("1")
            await each.until(lambda: shown() is None)

    play(scene)


def test_a_filter_on_records() -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.press("3")
            await each.filter("offset == 0 and api == Produce")
            shown = each.app.session.shown
            assert {shown.parts.value(row, "offset") for row in shown.numbers().tolist()} == {0}
            await each.press("1")
            assert each.app.session.text == ""
            assert "filter removed" in each.lines[-2]

    play(scene)


def test_columns_and_times() -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.press("t")
            assert each.app.times.style == "d"
            assert each.lines[4].split()[1] == "0.001547"
            names = list(each.app.rows.columns)
            await each.press("right", "right", "right", "s")
            assert "api▴" in each.lines[2]
            found = [each.app.session.shown.parts.value(row, "api") for row in _numbers(each)]
            assert found == sorted(found)
            await each.press("s")
            found = [each.app.session.shown.parts.value(row, "api") for row in _numbers(each)]
            assert found == sorted(found, reverse=True)
            await each.press("s", "less_than_sign", "x")
            assert each.app.rows.columns == (*names[:3], *names[4:])

    play(scene)


def _numbers(each: object) -> list[int]:
    numbers: list[int] = each.app.session.shown.numbers().tolist()  # type: ignore[attr-defined]
    return numbers


def test_the_mouse_selects_rows_and_sorts() -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.click("#rows", offset=(10, 4))
            assert each.app.rows.cursor == 3
            await each.click("#rows", offset=(5, 0))
            sort = each.app.session.shown.sort
            assert sort is not None
            assert sort.name == "request_packet"

    play(scene)


@pytest.mark.long
def test_settings_are_remembered(tmp_path: Path) -> None:
    file = tmp_path / "kafkashark" / "browse.json"

    async def first() -> None:
        async with screen(settings_file=file) as each:
            await each.press("t", "x")
            await each.filter("api == Fetch")

    async def second() -> None:
        async with screen(settings_file=file) as each:
            assert each.app.times.style == "d"
            assert each.app.rows.columns[0] == "request_time_ns"
            await each.press("slash", "up")
            assert each.app.bar.text == "api == Fetch"

    play(first)
    assert file.stat().st_mode & 0o777 == 0o600
    play(second)
    file.write_text('{"times": 3, "columns": [1], "filters": [1], "list_share": 1e99}')
    play(lambda: _opens(file))


async def _opens(file: Path) -> None:
    async with screen(settings_file=file) as each:
        assert "281 exchanges" in each.text


def test_a_too_small_terminal() -> None:
    async def scene() -> None:
        async with screen(size=(30, 8)) as each:
            assert "too small" in each.text
            await each.pilot.resize_terminal(80, 24)
            await each.pilot.pause()
            assert "281 exchanges" in each.text

    play(scene)


def test_a_capture_without_kafka(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(DEMO.read_bytes()[:24])

    async def nothing() -> None:
        async with screen(empty) as each:
            assert "0 exchanges" in each.lines[-2]

    play(nothing)


@pytest.mark.parametrize("size", [(80, 24), pytest.param((120, 40), marks=pytest.mark.long)])
def test_control_characters_are_not_shown(size: tuple[int, int], tmp_path: Path) -> None:
    data = DEMO.read_bytes().replace(b"billing-1", b"bi\x1b[2Jng\x07")
    file = tmp_path / "hostile.pcap"
    file.write_bytes(data)

    async def scene() -> None:
        async with screen(file, size=size) as each:
            await each.filter('client_id contains "bi"')
            for key in "12345":
                await each.press(key)
                assert all(line.isprintable() for line in each.lines)
            assert "1/" in each.lines[-2]

    play(scene)


def test_a_damaged_capture_is_shown_up_to_the_damage(tmp_path: Path) -> None:
    file = tmp_path / "cut.pcap"
    file.write_bytes(DEMO.read_bytes()[:60_000])

    async def scene() -> None:
        async with screen(file) as each:
            assert "problem" in each.lines[-2]
            assert len(each.app.session.shown) > 50

    play(scene)
