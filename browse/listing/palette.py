"""Colours by meaning for any theme: each is readable on the background of that theme."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.app import App
from textual.color import BLACK, WHITE, Color

LEAST_CONTRAST = 4.5
"""Source: WCAG 2.2, 1.4.3 (https://www.w3.org/TR/WCAG22/#contrast-minimum)."""
_STEP = 0.05

_HUES = {
    "row-error": ("#e0506a", "ansi_bright_red"),
    "row-damaged": ("#e070d0", "ansi_bright_magenta"),
    "row-incomplete": ("#fea62b", "ansi_bright_yellow"),
    "row-metadata": ("#909090", "ansi_default"),
    "row-groups": ("#a88cf0", "ansi_magenta"),
    "row-transactions": ("#4ebf71", "ansi_green"),
    "row-security": ("#2fb5b5", "ansi_cyan"),
    "row-admin": ("#57a5e2", "ansi_bright_blue"),
    "byte-offset": ("#909090", "ansi_default"),
    "footer-key-foreground": ("#fea62b", "ansi_bright_yellow"),
}
"""Variables of style sheets, each with its colour, and its place among 16 colours."""
_BACKGROUNDS = {"footer-key-foreground": "panel"}


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def readable(color: Color, background: Color) -> Color:
    """Return a colour, made lighter or darker until it is readable on a background."""
    towards = WHITE if _luminance(background) < 0.18 else BLACK
    found, share = color, 0.0
    while contrast(found, background) < LEAST_CONTRAST and share < 1:
        share += _STEP
        found = color.blend(towards, min(1.0, share))
    return found


def palette(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the colours for the variables of a theme."""
    found = {}
    for name, (color, ansi) in _HUES.items():
        background = variables[_BACKGROUNDS.get(name, "surface")]
        is_ansi = not background.startswith("#")
        found[name] = ansi if is_ansi else readable(Color.parse(color), Color.parse(background)).hex
    return found


def _luminance(color: Color) -> float:
    """
    Return the relative luminance, from 0 to 1.

    Source: WCAG 2.2 (https://www.w3.org/TR/WCAG22/#dfn-relative-luminance).
    """
    parts = (part / 255 for part in (color.r, color.g, color.b))
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


class PaletteApp(App[Any]):
    """An application whose style sheets have these colours, too."""

    def get_css_variables(self) -> dict[str, str]:
        """Return the variables of the theme, with the colours by meaning."""
        variables = super().get_css_variables()
        return variables | palette(variables)
