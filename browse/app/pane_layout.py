"""The arrangement of the list and the panes beside it."""

from __future__ import annotations

from textual.containers import Container
from textual.widget import Widget

from browse.app.browse_settings import BrowseSettings
from browse.detail import DetailPanes

LAYOUTS = ("stacked", "split", "beside")
"""The list above the details; the panes of the details side by side; the list left of the
details."""
STEP = 10
_WIDE = 160
"""Width from which the panes of the details are side by side, unless the user arranged them."""
MIN_WIDTH, MIN_HEIGHT = 40, 10
"""Minimum size; smaller terminals show a message only."""


class PaneLayout(Container):
    """Two panes of adjustable size; either may be maximised."""

    DEFAULT_CSS = """
    PaneLayout { height: 1fr; layout: vertical; }
    PaneLayout.-beside { layout: horizontal; }
    PaneLayout > .pane { height: 1fr; width: 1fr; }
    """

    def __init__(self, first: Widget, second: Widget | None, settings: BrowseSettings) -> None:
        self._first, self._second = first, second
        for pane in filter(None, (first, second)):
            pane.add_class("pane")
        super().__init__(*filter(None, (first, second)), id="panes")
        self._settings = settings
        self.is_filled = False

    def on_mount(self) -> None:
        """Apply the remembered sizes."""
        self.apply_sizes()

    def apply_sizes(self) -> None:
        """Apply the sizes."""
        second = self._second
        if second is None:
            return
        layout = self._layout
        share, is_beside = self._settings.list_share, layout == "beside"
        self.set_class(is_beside, "-beside")
        for pane, part in ((self._first, share), (second, 100 - share)):
            pane.styles.height = "1fr" if is_beside else f"{part}fr"
            pane.styles.width = f"{part}fr" if is_beside else "1fr"
        if isinstance(second, DetailPanes):
            second.put(beside=layout == "split")
        in_first = self._first.has_focus_within or self._first.has_focus
        self._first.display = not self.is_filled or in_first
        second.display = not self.is_filled or not in_first

    @property
    def _layout(self) -> str:
        """The arrangement: the user's, or one for the width of the screen."""
        if self._settings.layout in LAYOUTS:
            return self._settings.layout
        return "split" if self.app.size.width >= _WIDE else "stacked"

    def on_resize(self) -> None:
        """Arrange the panes for another width."""
        self.apply_sizes()

    def next_layout(self) -> None:
        """Change the arrangement."""
        index = LAYOUTS.index(self._layout)
        self._settings.layout = LAYOUTS[(index + 1) % len(LAYOUTS)]
        self.apply_sizes()

    def give_room(self, steps: int) -> None:
        """Enlarge or shrink the focused pane."""
        in_first = self._first.has_focus_within or self._first.has_focus
        change = STEP * steps * (1 if in_first else -1)
        self._settings.list_share = max(20, min(80, self._settings.list_share + change))
        self.apply_sizes()

    def toggle_fill(self) -> None:
        """Maximise the focused pane, or restore both."""
        self.is_filled = not self.is_filled
        self.apply_sizes()
