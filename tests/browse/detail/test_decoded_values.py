"""The decoded value of a chosen record, on the screen."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from browse.app.browse_base import run_in_thread
from browse.detail import DetailPanes
from browse.listing.capture_opening import CaptureOpening
from browse.listing.screen_values import ScreenValues
from dissector.protocol.embedded.secrecy.hidden_records import hide_records
from dissector.values.value_settings import ValueSettings
from tests.browse.screens import Screen, play, screen
from tests.dissector.values.value_captures import PREFIX, order, write_values


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_values(tmp_path_factory.mktemp("values") / "values.pcap")


def panes_of(opening: CaptureOpening) -> DetailPanes:
    return DetailPanes(values=ScreenValues(opening.access(), run_in_thread))


def marked_bytes(panes: DetailPanes) -> bytes:
    marked = panes.bytes.marked
    return panes.bytes.block.data[marked.start : marked.stop]


async def shows(each: Screen, panes: DetailPanes, line: str) -> None:
    await each.until(lambda: panes.fields.chosen is not None and panes.fields.chosen.line == line)


def test_a_chosen_record_opens_its_value_and_marks_its_bytes(capture: Path) -> None:
    opening = CaptureOpening([str(capture)])
    panes = panes_of(opening)

    async def scene() -> None:
        async with screen(opening=opening, details=panes, size=(120, 60)) as each:
            await each.press("3")
            await each.filter("topic == orders and value.id == 5")
            await shows(each, panes, "value as avro: orders-value v4, 3 fields")
            assert marked_bytes(panes) == PREFIX + order(5)
            await each.until(lambda: 'sku: "s6"' in each.text)
            await each.press("down")
            await shows(each, panes, "value as avro: orders-value v4, 3 fields")
            await each.until(lambda: marked_bytes(panes) == order(5))
            panes.fields.focus()
            await each.press("down", "down", "Y")
            assert each.app.clipboard == "Ann"
            await each.press("up", "up", "Y")
            assert '\n      "sku": "s5"\n' in each.app.clipboard
            await each.press("down", "equals_sign", "enter")
            assert each.app.bar.applied == "value.id == 5"

    play(scene)


@pytest.mark.long
def test_filters_of_exchanges_by_values(capture: Path) -> None:
    opening = CaptureOpening([str(capture)])

    async def scene() -> None:
        async with screen(opening=opening) as each:
            await each.filter("value.user.id == 5")
            assert len(each.app.session.shown) == 1
            await each.filter("value.nothing")
            assert len(each.app.session.shown) == 0

    play(scene)


@pytest.mark.long
def test_values_can_be_left_alone(capture: Path) -> None:
    opening = CaptureOpening([str(capture)], {"values": ValueSettings(is_off=True)})
    panes = panes_of(opening)

    async def scene() -> None:
        async with screen(opening=opening, details=panes) as each:
            await each.press("3")
            await each.until(lambda: panes.fields.chosen is not None)
            await each.until(lambda: (panes.fields.chosen or panes).name == "[0]")
            assert "avro" not in each.text

    play(scene)


def test_hidden_fields_are_shown_in_no_pane(capture: Path) -> None:
    opening = CaptureOpening([str(capture)], {"values": ValueSettings(masks=("value.name",))})

    async def scene() -> None:
        panes = panes_of(opening)
        async with screen(opening=opening, details=panes, size=(140, 60)) as each:
            await each.press("3")
            await each.filter("topic == orders and value.id == 5")
            await shows(each, panes, "value as avro: orders-value v4, 3 fields")
            await each.until(lambda: 'sku: "s6"' in each.text)
            text = each.text
            assert 'name: "***"' in text
            assert "Ann" not in text
            assert "41 6e 6e" not in text

    play_hidden(scene)


def play_hidden(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Play a scene while the bytes of records are hidden, as `--mask` does."""

    def play_it() -> None:
        hide_records(True)
        play(scene)

    copy_context().run(play_it)


@pytest.mark.long
def test_exports_of_hidden_fields(capture: Path, tmp_path: Path) -> None:
    """Rows have none of them; packets, which have the bytes as captured, are refused."""
    opening = CaptureOpening([str(capture)], {"values": ValueSettings(masks=("value.name",))})

    async def scene() -> None:
        async with screen(opening=opening, details=panes_of(opening)) as each:
            await each.press("3")
            await each.filter("topic == orders and value.id == 5")
            for form in ("csv", "ndjson", "pcapng"):
                path = tmp_path / f"out.{form}"
                each.app.export_to(form, path)
                await each.settle()
                if form == "pcapng":
                    assert "--redact replaces contents" in each.app.status.notice
                    assert not path.exists()
                    continue
                written = path.read_text()
                assert "orders" in written
                assert "***" in written
                assert "Ann" not in written
                assert "416e6e" not in written

    play_hidden(scene)
