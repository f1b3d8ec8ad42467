"""The filter bar: validity colours, suggestions, history."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Label, OptionList, Static

from browse.filtering.filter_check import Check, check
from browse.filtering.filter_history import FilterHistory
from dissector.view.text.escape import escaped

Suggest = Callable[[str], list[str]]
"""Returns the completions of a text."""

_PROMPT = "/ "


class FilterInput(Input):
    """Input line of the bar; passes keys for suggestions and history to the bar."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "bar('older')", "Older filter, or suggestion above", show=False),
        Binding("down", "bar('newer')", "Newer filter, or suggestion below", show=False),
        Binding("tab", "bar('complete')", "Take the suggestion", show=False, priority=True),
        Binding("escape", "bar('leave')", "Leave the filter bar", show=False),
    ]

    class Key(Message):
        """A key that the bar handles."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def action_bar(self, name: str) -> None:
        """Pass a key to the bar."""
        self.post_message(self.Key(name))

    def _on_paste(self, event: events.Paste) -> None:
        """Join pasted lines: a filter may be written in several."""
        event.stop()
        event.prevent_default()  # it would keep the first line only
        lines = filter(None, map(str.strip, event.text.splitlines()))
        self.replace(" ".join(lines), *self.selection)


class FilterBar(Vertical):
    """
    An input for filters, with verdict and suggestions.

    Attributes:
        history: Used filters.
        records: Whether filters may name columns of records.
        applied: The active filter.
    """

    DEFAULT_CSS = """
    FilterBar { height: auto; max-height: 12; }
    FilterBar Horizontal { height: 1; }
    FilterBar Label { width: 2; color: $text-muted; }
    FilterBar FilterInput { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    FilterBar FilterInput:focus { border: none; }
    FilterBar.-valid FilterInput { background: $success-muted; color: $text-success; }
    FilterBar.-unfinished FilterInput { background: $warning-muted; color: $text-warning; }
    FilterBar.-invalid FilterInput { background: $error-muted; color: $text-error; }
    FilterBar #filter-verdict { height: 1; color: $text-error; display: none; }
    FilterBar.-unfinished #filter-verdict { display: block; color: $text-warning; }
    FilterBar.-invalid #filter-verdict { display: block; }
    FilterBar OptionList {
        height: auto; max-height: 8; border: none; padding: 0 0 0 2; display: none;
    }
    FilterBar.-suggesting OptionList { display: block; }
    """

    class Applied(Message):
        """The user applied a filter; an empty text removes it."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """The user left the bar without a new filter."""

    def __init__(self, suggest: Suggest, history: FilterHistory, *, id: str) -> None:
        super().__init__(id=id)
        self.history = history
        self.records = False
        self.applied = ""
        self._suggest = suggest
        self._verdict = check("")

    def compose(self) -> ComposeResult:
        """Lay out the bar."""
        with Horizontal():
            yield Label(_PROMPT)
            yield FilterInput(
                placeholder="filter: api == Produce and latency_ms > 50",
                id="filter-input",
                select_on_focus=False,
            )
        yield Static("", id="filter-verdict", markup=False)
        options = OptionList(id="filter-suggestions", markup=False)
        options.can_focus = False
        yield options

    @property
    def verdict(self) -> Check:
        """Verdict about the current text."""
        return self._verdict

    @property
    def text(self) -> str:
        """The current text."""
        return self._input.value

    @property
    def _input(self) -> FilterInput:
        return self.query_one(FilterInput)

    @property
    def _options(self) -> OptionList:
        return self.query_one(OptionList)

    def edit(self, text: str | None = None) -> None:
        """Focus the bar, optionally with another text."""
        if text is not None:
            self.set_text(text)
        # Not `focus()`, which takes effect later: keys typed meanwhile would reach the list.
        self.screen.set_focus(self._input)
        self._input.cursor_position = len(self._input.value)

    def set_text(self, text: str) -> None:
        """Show a text without applying it."""
        self._input.value = text
        self._judge(text)

    @on(Input.Changed)
    def _on_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._judge(event.value)
        if self._input.has_focus:
            self._show_suggestions()

    def _judge(self, text: str) -> None:
        self._verdict = verdict = check(text, records=self.records)
        for state in ("valid", "unfinished", "invalid"):
            self.set_class(verdict.state == state, f"-{state}")
        place = " " * (len(_PROMPT) + verdict.position)
        self.query_one("#filter-verdict", Static).update(
            Text(escaped(f"{place}^ {verdict.message}"))
        )

    def _show_suggestions(self) -> None:
        value = self._input.value[: self._input.cursor_position]
        found = self._suggest(value) if value.strip() else []
        self._options.clear_options()
        self._options.add_options([Text(each) for each in found])
        self.set_class(bool(found), "-suggesting")

    def _hide_suggestions(self) -> None:
        self.remove_class("-suggesting")
        self._options.clear_options()

    @on(Input.Submitted)
    def _on_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self.has_class("-suggesting") and self._options.highlighted is not None:
            self._complete()
            return
        if self._verdict.state in ("empty", "valid"):
            self._hide_suggestions()
            self.applied = event.value.strip()
            self.history.add(self.applied)
            self.post_message(self.Applied(self.applied))

    @on(FilterInput.Key)
    def _on_bar_key(self, event: FilterInput.Key) -> None:
        event.stop()
        is_suggesting = self.has_class("-suggesting")
        match event.name:
            case "complete":
                self._complete()
            case "leave" if is_suggesting:
                self._hide_suggestions()
            case "leave":
                self.set_text(self.applied)
                self.post_message(self.Left())
            case "newer" if is_suggesting:
                self._options.action_cursor_down()
            case "older" if is_suggesting and self._options.highlighted is not None:
                self._options.action_cursor_up()
            case "older":
                self._replace(self.history.older(self._input.value))
            case "newer":
                self._replace(self.history.newer(self._input.value))

    def _replace(self, text: str) -> None:
        with self._input.prevent(Input.Changed):
            self.set_text(text)
        self._input.cursor_position = len(text)
        self._hide_suggestions()

    def _complete(self) -> None:
        """Accept the highlighted suggestion, or the first one."""
        if not self._options.option_count:
            self._show_suggestions()
            return
        option = self._options.get_option_at_index(self._options.highlighted or 0)
        tail = self._input.value[self._input.cursor_position :]
        text = str(option.prompt)
        with self._input.prevent(Input.Changed):
            self.set_text(text + tail)
        self._input.cursor_position = len(text)
        self._hide_suggestions()

    @on(OptionList.OptionSelected)
    def _on_option(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._options.highlighted = event.option_index
        self._complete()
        self._input.focus()

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        """Hide suggestions when the bar loses the focus."""
        self._hide_suggestions()
