"""Colours of reports, on a terminal and on a page, by the contrast that W3C asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from textual.color import Color

from browse.listing.palette import LEAST_CONTRAST, contrast
from tests.corpus import FOLDER
from tests.dissector.cli.conftest import Run

BRIGHT: Mapping[str, tuple[str, ...]] = {
    "91": ("#ff0000", "#ff5555", "#f14c4c", "#e74856"),
    "93": ("#ffff00", "#ffff55", "#f5f543", "#f9f1a5"),
}
"""Bright red and yellow of xterm, the VGA console, VS Code, and Windows Terminal."""

STYLES = ("0", "1")
"""Escape codes without a colour: plain, bold."""

COMMANDS = ("conform", "advise")


@pytest.mark.parametrize("command", COMMANDS)
def test_colors_of_texts_are_readable_on_a_dark_terminal(run: Run, command: str) -> None:
    text = run(command, FOLDER / "demo.pcap", "--color", "always").out
    codes = set(re.findall(r"\x1b\[([0-9;]*)m", text)) - set(STYLES)
    assert codes
    for code in codes:
        for color in BRIGHT[code]:
            assert contrast(Color.parse(color), Color.parse("#000000")) >= LEAST_CONTRAST


@pytest.mark.parametrize("command", COMMANDS)
def test_colors_of_pages_are_readable_in_both_themes(run: Run, command: str) -> None:
    page = run(command, FOLDER / "demo.pcap", "-T", "html").out
    light_text, dark_text = re.findall(r":root[^{]*\{ color-scheme: (.*?)\}", page, re.DOTALL)[:2]
    light = _colors(light_text)
    assert len(light) > 12
    for theme in (light, light | _colors(dark_text)):
        backgrounds = [Color.parse(theme[name]) for name in ("paper", "box")]
        for name, color in theme.items():
            for background in [] if name in ("paper", "box", "line") else backgrounds:
                found = contrast(Color.parse(color), background)
                assert found >= LEAST_CONTRAST, f"--{name}: {found:.1f}"
    # Text that lets its background through would have less.
    styles = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    rules = re.findall(r"([^{}]*)\{([^{}]*)\}", styles)
    assert rules
    assert not [chosen for chosen, style in rules if re.search(r"[^-]opacity:", style)]


def _colors(text: str) -> dict[str, str]:
    return dict(re.findall(r"--(\w+): (#\w+)", text))
