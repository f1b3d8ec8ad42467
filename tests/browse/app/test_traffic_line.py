"""The line of traffic over the list: what it shows, and the times it selects."""

from __future__ import annotations

import numpy as np

from browse.listing.traffic_line import TrafficLine
from browse.rows.row_parts import RowParts
from browse.rows.traffic_bins import TrafficBins
from dissector.engine.tables.column_types import Coded, Integers
from tests.browse.screens import play, screen

SECOND = 1_000_000_000


def test_a_range_of_time_becomes_the_filter() -> None:
    async def scene() -> None:
        async with screen(size=(120, 30)) as each:
            line, session = each.app.query_one(TrafficLine), each.app.session
            parts = session.loading.parts
            begin_ns = session.begin_ns
            times = (parts.numbers("request_time_ns") - begin_ns) / SECOND

            def held(begin_s: float, end_s: float) -> int:
                return int(((times >= begin_s) & (times < end_s)).sum())

            await each.press("w", "right", "right", "space", "right", "right")
            assert line.has_focus
            chosen = line.range_s()
            await each.press("enter")
            assert each.app.rows.has_focus
            assert len(session.shown) == held(*chosen) > 0
            assert [crumb.title[:5] for crumb in session.crumbs] == ["time "]
            # Another time replaces the first one; Esc shows all again.
            await each.press("w", "end", "shift+left")
            chosen = line.range_s()
            await each.press("enter")
            assert len(session.crumbs) == 1
            assert 0 < len(session.shown) == held(*chosen) < len(parts)
            assert f"{chosen[0]:.6g}" in each.lines[0]
            await each.press("escape")
            assert len(session.shown) == len(parts)
            await each.press("w", "home", "left", "escape")
            assert each.app.rows.has_focus
            # By the mouse: all of it.
            await each.pilot.mouse_down(TrafficLine, offset=(3, 0))
            await each.pilot.hover(TrafficLine, offset=(60, 0))
            await each.pilot.hover(TrafficLine, offset=(3 + line.cells, 0))
            await each.pilot.mouse_up(TrafficLine, offset=(3 + line.cells, 0))
            await each.settle()
            assert len(session.shown) == len(parts)
            assert session.crumbs[0].title.startswith("time 0-")

    play(scene)


def test_bins_widen_with_the_capture() -> None:
    parts = RowParts()
    bins = TrafficBins(parts)
    generator = np.random.default_rng(7)
    every = []
    for last_s in (0.3, 2.0, 900.0, 4_000.0):
        times = np.sort(generator.integers(0, int(last_s * SECOND), 500))
        every.append(times)
        errors = Coded(np.arange(500) % 10, [[], *([["UNKNOWN_SERVER_ERROR"]] * 9)])
        response = Integers(np.full(500, -(1 << 63)))
        request = Integers(times + SECOND)
        columns = {"request_time_ns": request, "response_time_ns": response, "errors": errors}
        parts.append(columns)
        assert bins.update(SECOND)
        assert not bins.update(SECOND)
    together = np.concatenate(every)
    counts, failed = bins.resampled(bins.end)
    assert counts.sum() == 2_000
    assert failed.sum() == 1_800
    wanted = np.bincount(together // bins.bin_ns)
    assert counts.tolist() == wanted.tolist()
    wide, _ = bins.resampled(100)
    assert wide.sum() == 2_000
    assert (bins.resampled(5_000)[0] > 0).any()
