"""A box with a title over the screen; Escape closes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Generic, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from dissector.view.text.escape import escaped

Result = TypeVar("Result")


class Panel(ModalScreen[Result | None], Generic[Result]):
    """A panel; it returns None when it is closed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Close", key_display="Esc"),
    ]
    DEFAULT_CSS = """
    Panel { align: center middle; }
    Panel > Vertical {
        width: 96%; max-width: 160; height: 94%;
        border: round $primary; background: $surface; padding: 0 1;
    }
    Panel .panel--hint { height: 1; color: $text-muted; }
    """

    def __init__(self, title: str, hint: str = "Esc closes") -> None:
        """Create the panel; the title may come from a capture, the hint describes keys."""
        super().__init__()
        self._title = escaped(title)
        self._hint = hint

    def compose(self) -> ComposeResult:
        """Lay out the box."""
        with Vertical() as box:
            box.border_title = Text(self._title)
            yield from self.contents()
            yield Static(Text(self._hint), classes="panel--hint")

    def contents(self) -> Iterable[Widget]:
        """Return the contents of the box."""
        return ()

    def action_leave(self) -> None:
        """Close the panel without a result."""
        self.dismiss(None)
