from __future__ import annotations

import pytest

from browse.detail.field_tree import FieldTree
from browse.panels.help_panel import HelpPanel, key_group
from browse.panels.line_list import LineList
from browse.panels.report_panel import groups_panel, stats_panel
from dissector.public import open_capture
from dissector.summary.groups_reader import GroupsReader
from dissector.summary.statistics import Statistics, health
from tests.browse.panels.panel_host import Host, lines, opened, play, text
from tests.corpus import FOLDER

GROUPS = FOLDER / "librdkafka-group-rebalance.pcap"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_statistics(size: tuple[int, int]) -> None:
    capture = open_capture(FOLDER / "demo.pcap")
    statistics = Statistics()
    for part in capture.parts():
        statistics.add(part)
    counters = health(capture.reading, 0)

    async def scene() -> None:
        async with opened(stats_panel(statistics.sections(), counters), size) as (app, pilot):
            shown = lines(app)
            assert "Statistics" in shown[min(1, len(shown))] or "Statistics" in shown[0]
            assert any("Per API" in line for line in shown)
            assert any(" api " in line and "p50_ms" in line for line in shown)
            assert all(len(line) <= size[0] for line in shown)
            await pilot.press("end")
            await pilot.pause()
            assert "kafka connections" in text(app) or "problems" in text(app)
            await pilot.press("escape")
            assert app.results == [None]

    play(scene)


def test_groups() -> None:
    capture = open_capture(GROUPS)
    reader = GroupsReader(capture)
    for window in capture.windows(gleaning=True):
        reader.add(window)

    async def scene() -> None:
        async with opened(groups_panel(reader.sections()), (120, 40)) as (app, _):
            assert "Members" in text(app)
            assert "Partitions" in text(app)
        async with opened(groups_panel({})) as (app, _):
            assert "no group in the capture" in text(app)

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
