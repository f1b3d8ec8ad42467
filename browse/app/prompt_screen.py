"""One-line prompts: packet number, letter of a mark, search text."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import Input, Label


class PromptScreen(ModalScreen[str | None]):
    """Prompt for a text at the bottom of the screen; returns None on Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel", show=False)]
    DEFAULT_CSS = """
    PromptScreen { align: left bottom; background: transparent; }
    PromptScreen Horizontal { height: 1; background: $primary; }
    PromptScreen Label { padding: 0 1; color: $text; }
    PromptScreen Input, PromptScreen Input:focus {
        width: 1fr; height: 1; border: none; padding: 0;
    }
    """

    def __init__(self, question: str, value: str = "") -> None:
        super().__init__()
        self._question = question
        self._value = value
        self._early = ""

    def compose(self) -> ComposeResult:
        """Lay out the prompt."""
        with Horizontal():
            yield Label(self._question, markup=False)
            yield Input(self._value, id="prompt")

    def on_mount(self) -> None:
        """Move typed text into the input line once it exists."""
        line = self.query_one(Input)
        line.value += self._early
        self.set_focus(line)
        line.cursor_position = len(line.value)

    def on_key(self, event: events.Key) -> None:
        """Buffer typed text until the input line exists."""
        if self.focused is None and event.character and event.is_printable:
            self._early += event.character

    @on(Input.Submitted)
    def _on_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)

    def action_leave(self) -> None:
        """Cancel."""
        self.dismiss(None)


class LetterScreen(ModalScreen[str | None]):
    """Prompt for one key: the letter of a mark."""

    DEFAULT_CSS = """
    LetterScreen { align: left bottom; background: transparent; }
    LetterScreen Label { height: 1; width: 1fr; padding: 0 1; background: $primary; color: $text; }
    """

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Lay out the prompt."""
        yield Label(self._question, markup=False)

    def key_escape(self) -> None:
        """Cancel."""
        self.dismiss(None)

    def on_key(self, event: events.Key) -> None:
        """Return the letter."""
        event.stop()
        if event.character and event.is_printable:
            self.dismiss(event.character)
