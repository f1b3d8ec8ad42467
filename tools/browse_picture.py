"""
Draws the screen of `browse` for README and docs.

    python -m tools.browse_picture captures/demo.pcap docs/browse.svg
    python -m tools.browse_picture --record --filter 'value.id > 0' orders.pcap docs/values.svg
"""

from __future__ import annotations

import argparse
import asyncio
import re
from pathlib import Path

from textual.pilot import Pilot

from browse.app.browse_app import BrowseApp
from browse.app.browse_base import run_in_thread
from browse.detail import DetailPanes
from browse.detail.value_nodes import is_decoded
from browse.listing.capture_opening import CaptureOpening
from browse.listing.exchange_loading import ExchangeLoading
from browse.listing.list_columns import MODES
from browse.listing.screen_values import ScreenValues

SIZE = (132, 36)
FILTER = "error == MEMBER_ID_REQUIRED or api in {JoinGroup, SyncGroup, Produce}"
PACKET = 121


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("capture")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--filter", default=FILTER)
    parser.add_argument("--packet", type=int, default=PACKET)
    parser.add_argument(
        "--record", action="store_true", help="the first record that passes, not an exchange"
    )
    arguments = parser.parse_args()
    packet = None if arguments.record else arguments.packet
    svg = asyncio.run(picture(arguments.capture, arguments.filter, packet))
    arguments.picture.write_text(without_links(svg), encoding="utf-8")


def without_links(svg: str) -> str:
    """Return a picture that loads nothing: no fonts of other hosts."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)


async def picture(capture: str, text: str, packet: int | None) -> str:
    """Return the screen as SVG, with the row of a packet chosen; None: the first record."""
    access = CaptureOpening([capture]).access()
    loading = ExchangeLoading(access)
    loading.start()
    panes = DetailPanes(values=ScreenValues(access, run_in_thread))
    app = BrowseApp(access, loading, panes)
    async with app.run_test(size=SIZE) as pilot:
        while not loading.is_done:
            await pilot.pause(0.02)
        if packet is None:
            await record(app, panes, text, pilot)
            return app.export_screenshot(title="kafkashark browse")
        app.apply_filter(text)
        app.go_to_packet(packet)
        # Details appear after a delay.
        while app.details_number != app.rows.chosen:
            await pilot.pause(0.02)
        await pilot.pause()
        return app.export_screenshot(title="kafkashark browse")


async def record(app: BrowseApp, panes: DetailPanes, text: str, pilot: Pilot[str]) -> None:
    """Open the value of the first record that passes a filter."""
    app.action_mode([each.name for each in MODES].index("records"))
    app.apply_filter(text)
    while panes.fields.chosen is None or not is_decoded(panes.fields.chosen):
        await pilot.pause(0.02)
    await pilot.pause(0.3)


if __name__ == "__main__":
    main()
