"""
Draws the screen of `browse` for README.

    python -m tools.browse_picture captures/demo.pcap docs/browse.svg
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from browse.app.browse_app import BrowseApp
from browse.detail import DetailPanes
from browse.listing.capture_opening import CaptureOpening
from browse.listing.exchange_loading import ExchangeLoading

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
    arguments = parser.parse_args()
    svg = asyncio.run(picture(arguments.capture, arguments.filter, arguments.packet))
    arguments.picture.write_text(svg, encoding="utf-8")


async def picture(capture: str, text: str, packet: int) -> str:
    """Return the screen as SVG, with the row of a packet chosen."""
    access = CaptureOpening([capture]).access()
    loading = ExchangeLoading(access)
    loading.start()
    app = BrowseApp(access, loading, DetailPanes())
    async with app.run_test(size=SIZE) as pilot:
        while not loading.is_done:
            await pilot.pause(0.02)
        app.apply_filter(text)
        app.go_to_packet(packet)
        # Details appear after a delay.
        while app.details_number != app.rows.chosen:
            await pilot.pause(0.02)
        await pilot.pause()
        return app.export_screenshot(title="kafkashark browse")


if __name__ == "__main__":
    main()
