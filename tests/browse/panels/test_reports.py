from __future__ import annotations

import pytest

from browse.detail.field_tree import FieldTree
from browse.panels.help_panel import HelpPanel, key_group
from browse.panels.line_list import LineList
from browse.panels.summary_tables import STATISTICS, groups_panel, stats_panel
from dissector.public import open_capture
from dissector.summary.groups_reader import GroupsReader
from dissector.summary.lag_intervals import LagIntervals
from dissector.summary.statistics import Statistics, health
from tests.browse.panels.panel_host import Host, lines, opened, play, text
from tests.corpus import FOLDER


@pytest.mark.thinned(2)
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_statistics(size: tuple[int, int]) -> None:
    capture = open_capture(FOLDER / "demo.pcap")
    statistics = Statistics(STATISTICS)
    for part in capture.parts():
        statistics.add(part)
    counters = health(capture.reading, 0)

    async def scene() -> None:
        panel = stats_panel(statistics.sections(), counters)
        async with opened(panel, size) as (app, pilot):
            assert "1 APIs (16)   2 Clients (13)" in text(app)
            assert all(len(line) <= size[0] for line in lines(app))

            async def sorted_apis(*keys: str) -> list[str]:
                await pilot.press(*keys)
                await pilot.pause()
                shown = panel.rows.shown
                return [shown.parts.value(shown.number(at), "api") for at in range(len(shown))]

            most, least = await sorted_apis("right", "s"), await sorted_apis("s")
            assert most[:2] == ["Fetch", "Produce"]
            assert least[0] in ("AddPartitionsToTxn", "CreateTopics", "EndTxn")
            assert (await sorted_apis("s")) == most
            await pilot.press("shift+tab")
            await pilot.pause()
            assert "kafka connections" in text(app)
            await pilot.press("enter")  # a counter is no filter
            await pilot.press("tab", "home", "down", "enter")
            assert app.results == ["api == Produce"]

    play(scene)


def test_groups() -> None:
    capture = open_capture(FOLDER / "demo.pcap")
    lags = LagIntervals(capture, 1)
    reader = GroupsReader(capture, None, lags.count_members)
    for window in capture.windows(gleaning=True):
        reader.add(window)
        lags.add(window)
    sections = {**reader.sections(), **lags.sections()}

    async def scene() -> None:
        async with opened(groups_panel(sections), (120, 40)) as (app, pilot):
            assert "2 Members" in text(app)
            await pilot.press("3")
            await pilot.pause()
            assert "high_watermark" in text(app)
            await pilot.press("4")
            await pilot.pause()
            assert "no member; grows by 18.7/s since 09:46:35" in text(app)
            await pilot.press("enter")
            assert "billing" in str(app.results)
        async with opened(groups_panel({})) as (app, pilot):
            assert "no group in the capture" in text(app)
            await pilot.press("s", "tab", "2", "enter", "escape")
            assert app.results == [None]

    play(scene)


def test_help_has_each_key() -> None:
    async def scene() -> None:
        groups = [
            key_group(Host(), "Fields", FieldTree),
            key_group(Host(), "Lines", LineList, FieldTree),
        ]
        async with opened(HelpPanel(groups), (80, 24)) as (app, pilot):
            shown = text(app)
            assert "Fields" in shown
            assert "Filter by this field" in shown
            assert "And not this field" in shown
            await pilot.press("end")
            await pilot.pause()
            assert "Copy the field" in text(app)
        titles = [description for _, description in groups[0].keys]
        assert len(titles) == len(FieldTree.BINDINGS)
        keys = {description: key for key, description in groups[1].keys}
        assert keys["Up"] == "↑, k"

    play(scene)
