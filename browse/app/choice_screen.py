"""A list of choices; the user picks one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Label, OptionList


class ChoiceScreen(ModalScreen[int | None]):
    """Returns the index of the chosen entry; None on Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Cancel", show=False),
        Binding("j", "move('cursor_down')", "Down", show=False),
        Binding("k", "move('cursor_up')", "Up", show=False),
    ]
    DEFAULT_CSS = """
    ChoiceScreen { align: center middle; }
    ChoiceScreen Vertical {
        width: auto; max-width: 90%; height: auto; max-height: 90%;
        border: round $primary; background: $surface; padding: 0 1;
    }
    ChoiceScreen Label { text-style: bold; }
    ChoiceScreen OptionList { width: auto; min-width: 30; height: auto; }
    ChoiceScreen OptionList, ChoiceScreen OptionList:focus { border: none; padding: 0; }
    """

    def __init__(
        self,
        title: str,
        choices: Sequence[str],
        first: int = 0,
        preview: Callable[[int], None] | None = None,
    ) -> None:
        """Begin at the choice `first`; `preview` is called with each that is highlighted."""
        super().__init__()
        self._title = title
        self._choices = choices
        self._first = first
        self._preview = preview

    def compose(self) -> ComposeResult:
        """Lay out the choices."""
        with Vertical():
            yield Label(self._title, markup=False)
            yield OptionList(*(Text(each, no_wrap=True) for each in self._choices), markup=False)

    @on(OptionList.OptionSelected)
    def _on_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_index)

    def on_mount(self) -> None:
        """Highlight the choice to begin at."""
        options = self.query_one(OptionList)
        options.focus()
        options.highlighted = self._first

    @on(OptionList.OptionHighlighted)
    def _on_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        if self._preview is not None:
            self._preview(event.option_index)

    def action_move(self, name: str) -> None:
        """Move the highlight."""
        getattr(self.query_one(OptionList), f"action_{name}")()

    def action_leave(self) -> None:
        """Cancel."""
        self.dismiss(None)
