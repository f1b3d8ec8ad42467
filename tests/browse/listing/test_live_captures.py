"""Growing captures: pipes and files."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import pytest

from browse.listing.capture_opening import CaptureOpening
from tests.browse.screens import DEMO, play, screen


@pytest.mark.long
def test_a_pipe_is_followed_and_its_bodies_are_read_again() -> None:
    data = DEMO.read_bytes()
    out, into = os.pipe()

    async def scene() -> None:
        with io.FileIO(out) as pipe, io.FileIO(into, "w") as writer:
            opening = CaptureOpening(["-"], pipe=pipe)
            async with screen(opening=opening) as each:
                session, rows = each.app.session, each.app.rows
                writer.write(data[:20_000])
                await each.until(lambda: len(session.shown) > 0)
                assert "live" in each.text
                before = len(session.shown)
                await each.until(lambda: rows.cursor == before - 1)
                await each.pilot.press("home")
                writer.write(data[20_000:60_000])
                await each.until(lambda: len(session.shown) > before)
                assert rows.cursor == 0, "no longer following"
                await each.filter("request.client_software_name")
                await each.until(lambda: session.run is not None and session.run.is_done)
                await each.until(lambda: len(session.shown) > 0)
                writer.close()
                await each.until(lambda: session.loading.is_done)

    play(scene)


LOG = DEMO.with_name("kafka4-sasl-request-log.log.gz")


@pytest.mark.parametrize("data", [DEMO.read_bytes(), gzip.decompress(LOG.read_bytes())])
def test_a_growing_file(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "growing.pcap"
    file.write_bytes(data[:20_000])

    async def scene() -> None:
        opening = CaptureOpening([str(file)], follows=True)
        async with screen(opening=opening) as each:
            session = each.app.session
            await each.until(lambda: len(session.shown) > 0)
            before = len(session.shown)
            with file.open("ab") as writer:
                writer.write(data[20_000:])
            await each.until(lambda: len(session.shown) > before)
            await each.until(lambda: each.app.rows.cursor == len(session.shown) - 1)

    play(scene)
