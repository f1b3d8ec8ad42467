from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from browse.panels.column_chooser import ColumnChooser
from browse.panels.copy_chooser import CopyChooser
from browse.panels.export_dialog import ExportChoice, ExportDialog
from tests.browse.panels.panel_host import HOSTILE, SHOWN_HOSTILE, opened, play, text

COLUMNS = [("api", "name of the API"), ("client_id", "the client id"), ("errors", "errors")]


@pytest.mark.parametrize("key", ["enter", "ctrl+s"])
def test_export_returns_format_and_file(key: str, tmp_path: Path) -> None:
    async def scene() -> None:
        dialog = ExportDialog(1234, str(tmp_path / "some"))
        async with opened(dialog) as (app, pilot):
            assert "Export 1,234 rows" in text(app)
            assert "pcapng: the packets, for Wireshark" in text(app)
            await pilot.press(key)
            await pilot.pause()
            assert app.results == [ExportChoice("pcapng", tmp_path / "some.pcapng")]

    play(scene)


def test_the_suffix_follows_the_format(tmp_path: Path) -> None:
    async def scene() -> None:
        async with opened(ExportDialog(1, str(tmp_path / "some"))) as (app, pilot):
            assert "Export 1 row " in text(app)
            await pilot.press("shift+tab", "down", "enter", "tab", "enter")
            await pilot.pause()
            assert app.results == [ExportChoice("ndjson", tmp_path / "some.ndjson")]

    play(scene)


def test_overwriting_a_file_needs_confirmation(tmp_path: Path) -> None:
    there = tmp_path / "some.pcapng"
    there.write_bytes(b"")

    async def scene() -> None:
        async with opened(ExportDialog(1, str(tmp_path / "some")), (160, 24)) as (app, pilot):
            await pilot.press("enter")
            await pilot.pause()
            assert "Enter again to replace it" in text(app)
            assert app.results == []
            await pilot.press("enter")
            await pilot.pause()
            assert app.results == [ExportChoice("pcapng", there)]

    play(scene)


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "a.pcapng"
    source.write_bytes(b"")
    cases = {
        "": "name a file",
        str(tmp_path): "is a folder",
        str(tmp_path / "none" / "a"): "no such folder",
        str(source): "is read (open here); the export would overwrite it",
        "a\0b": "embedded null",
    }

    async def scene() -> None:
        dialog = ExportDialog(1, sources=[str(source), "-"])
        async with opened(dialog, (160, 24)) as (app, pilot):
            for name, expected in cases.items():
                dialog.query_one("#path", Input).value = name
                await pilot.press("enter", "enter")
                await pilot.pause()
                assert expected in " ".join(text(app).replace("│", "").split()), name
            await pilot.press("escape")
            assert app.results == [None]

    play(scene)


def test_columns_are_chosen_and_moved() -> None:
    async def scene() -> None:
        async with opened(ColumnChooser(["errors", "api"], COLUMNS)) as (app, pilot):
            assert "[x] errors" in text(app)
            assert "[ ] client_id" in text(app)
            await pilot.press("space", "down", "down", "space", "shift+up", "enter")
            await pilot.pause()
            assert app.results == [("client_id", "api")]

    play(scene)


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("down", "up"),
    [("shift+down", "shift+up"), ("J", "K"), ("greater_than_sign", "less_than_sign")],
)
def test_columns_are_moved_by_several_keys(down: str, up: str) -> None:
    async def scene() -> None:
        async with opened(ColumnChooser(["api", "client_id", "errors"], COLUMNS)) as (app, pilot):
            await pilot.press(down, down, up, "enter")
            await pilot.pause()
            assert app.results == [("client_id", "api", "errors")]

    play(scene)


def test_columns_can_be_reset_but_not_all_hidden() -> None:
    async def scene() -> None:
        chooser = ColumnChooser([HOSTILE], COLUMNS, ["api", "errors"])
        async with opened(chooser) as (app, pilot):
            assert SHOWN_HOSTILE in text(app)
            await pilot.press("space", "enter")
            await pilot.pause()
            assert app.results == []
            await pilot.press("r", "enter")
            await pilot.pause()
            assert app.results == [("api", "errors")]

    play(scene)


def test_a_format_of_a_copy_is_shown_and_returned() -> None:
    made: list[str] = []

    def form(name: str, result: str) -> tuple[str, object]:
        def make() -> str:
            made.append(name)
            return result

        return name, make

    async def scene() -> None:
        forms = [form("Text", "plain\n\ttext"), form("JSON", f"{HOSTILE}\n" * 300)]
        async with opened(CopyChooser(forms)) as (app, pilot):  # type: ignore[arg-type]
            assert "plain" in text(app)
            assert made == ["Text"]
            await pilot.press("down")
            await pilot.pause()
            assert SHOWN_HOSTILE in text(app)
            assert text(app).replace("\n", "").isprintable()
            await pilot.press("enter")
            await pilot.pause()
            assert app.results == [f"{HOSTILE}\n" * 300]
            assert made == ["Text", "JSON"]

    play(scene)
