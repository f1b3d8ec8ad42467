"""
Draws the screen of `browse` in use, for README: an SVG that moves, and loads nothing.

    python -m tools.moving_picture captures/demo.pcap docs/browse-moving.svg
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from textual.pilot import Pilot

from browse.app.browse_app import BrowseApp
from browse.app.browse_base import run_in_thread
from browse.detail import DetailPanes
from browse.listing.capture_opening import CaptureOpening
from browse.listing.exchange_loading import ExchangeLoading
from browse.listing.screen_values import ScreenValues
from tools.browse_picture import without_links

SIZE = (112, 30)


class Scene(NamedTuple):
    """
    A picture.

    Attributes:
        title: What it shows, as the title of the window.
        keys: The keys that lead to it from the picture before.
        panel: Whether they open a panel.
    """

    title: str
    keys: Sequence[str]
    panel: bool = False


_RANGE = ("w", *["right"] * 36, "space", *["right"] * 14)

SCENES = (
    Scene("kafkashark browse demo.pcap: traffic, exchanges, fields, bytes", ()),
    Scene("!  what stands out in the capture, ranked", ("exclamation_mark",), True),
    Scene("Enter  goes to the next place of a finding", ("enter",)),
    Scene("Tab  a field marks its bytes, and has a name in filters", ("tab", "end")),
    Scene("S  statistics as tables", ("shift+tab", "shift+tab", "S"), True),
    Scene("5 Enter  a row becomes the filter", ("5", "enter")),
    Scene(
        "w  traffic and errors over time: a range is a filter, too",
        ("w", *["right"] * 36, "space", *["right"] * 14),
    ),
    Scene("5  events of the timeline, with the exchanges that prove them", ("escape", "5")),
)
SECONDS = 3
"""Time that a picture is shown."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("capture")
    parser.add_argument("picture", type=Path)
    given = parser.parse_args()
    pictures = asyncio.run(screens(given.capture))
    given.picture.write_text(moving(pictures), encoding="utf-8")


async def screens(capture: str) -> list[str]:
    """Return a picture of each scene."""
    access = CaptureOpening([capture]).access()
    loading = ExchangeLoading(access)
    loading.start()
    app = BrowseApp(access, loading, DetailPanes(values=ScreenValues(access, run_in_thread)))
    pictures = []
    async with app.run_test(size=SIZE) as pilot:
        while not loading.is_done:
            await pilot.pause(0.02)
        for scene in SCENES:
            await pilot.press(*scene.keys)
            await settled(app, pilot, panel=scene.panel)
            pictures.append(app.export_screenshot(title=scene.title))
    return pictures


async def settled(app: BrowseApp, pilot: Pilot[object], *, panel: bool) -> None:
    """Wait until the screen shows what the keys led to."""
    while (len(app.screen_stack) > 1) != panel:
        await pilot.pause(0.05)
    session = app.session
    while session.run is not None and not session.run.is_done:
        await pilot.pause(0.05)
    await pilot.pause(1.0)


def moving(pictures: Sequence[str]) -> str:
    """Return one picture that shows some in turn, the first one where nothing may move."""
    whole_s, share = SECONDS * len(pictures), 100 / len(pictures)
    box = re.search(r'viewBox="[^"]+"', pictures[0])
    assert box is not None
    frames = "\n".join(
        f'<g class="scene" style="animation-delay:{SECONDS * number}s">{without_links(each)}</g>'
        for number, each in enumerate(pictures)
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {box[0]}>
<style>
.scene {{ visibility: hidden; animation: shown {whole_s}s step-end infinite; }}
@keyframes shown {{
  0% {{ visibility: visible; }}
  {share:.3f}% {{ visibility: hidden; }}
}}
.scene:first-of-type {{ visibility: visible; }}
@media (prefers-reduced-motion: reduce) {{ .scene {{ animation: none; }} }}
</style>
{frames}
</svg>
"""


if __name__ == "__main__":
    main()
