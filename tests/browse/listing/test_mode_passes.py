"""Lists filled by separate passes: records and events."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile

import pytest

from browse.listing import mode_passes
from browse.listing.list_columns import MAX_BYTES
from dissector.view.text.value_text import json_text, record_json
from tests.browse.rows.test_byte_spool import held_bytes
from tests.browse.screens import DEMO, Screen, play, screen


def rows(each: Screen) -> list[dict[str, object]]:
    parts = each.app.session.shown.parts
    return [json.loads(json_text(record_json(parts.row(row)))) for row in range(len(parts))]


@pytest.mark.long
def test_the_list_of_records_has_the_rows_of_the_command() -> None:
    command = [sys.executable, "-m", "dissector", "records", str(DEMO), "-T", "ndjson"]
    lines = subprocess.run(command, capture_output=True, check=True).stdout.splitlines()
    expected = [json.loads(line) for line in lines]
    assert expected
    for row in expected:
        row.pop("decoded", None)
        assert all(len(str(row[name])) < MAX_BYTES for name in ("key", "value"))

    async def scene() -> None:
        async with screen() as each:
            await each.press("3")
            assert rows(each) == expected

    play(scene)


def test_keys_and_values_of_records_are_not_kept_in_memory() -> None:
    async def scene() -> None:
        async with screen() as each:
            await each.press("3")
            parts = each.app.session.shown.parts
            values = sum(len(parts.value(row, "value") or b"") for row in range(len(parts)))
            held = held_bytes(parts)
            assert held < 60 * len(parts)
            # Read again, as nothing is kept.
            assert values > 10_000
            assert held_bytes(parts) == held

    play(scene)


@pytest.mark.long
def test_a_full_disk_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)

    async def scene() -> None:
        async with screen() as each:
            await each.press("3")
            assert each.app.session.problems() == ["capture: No space left on device"]
            await each.press("1")
            assert len(each.app.session.shown) == 281

    play(scene)


@pytest.mark.long
def test_a_full_list_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mode_passes, "MAX_RECORDS", 10)

    async def scene() -> None:
        async with screen() as each:
            await each.press("3")
            assert len(each.app.session.shown) >= 10
            assert "records  and more: filter for these" in each.text
            await each.press("1")
            assert "and more" not in each.text

    play(scene)
