"""The help: each key by task, and those of the panes; typed text filters it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import on
from textual.app import App
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.events import Resize
from textual.widget import Widget
from textual.widgets import Input

from browse.panels.line_list import LineList
from browse.panels.panel import Panel

_KEY_COLUMNS = 18
_TWO_COLUMNS = 96
"""Least width of the panel for two columns."""
_OTHERS = "Screen"
TASKS: Mapping[str, str] = {
    "Go": "go_to_packet mark to_mark next_fault same_connection counterpart",
    "Find and filter": "filter search next_found choose_time follow escape",
    "List": "mode choose_mode sort times columns hide_column shift_column",
    "Look closer": "expert conversation stats groups add_keys",
    "Take along": "copy comment export",
}
"""Tasks, and the names of their actions; all other actions are about the screen."""


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """
    The keys of a task or a pane.

    Attributes:
        title: Name of the task or pane, such as `List`.
        keys: The keys and their actions.
    """

    title: str
    keys: Sequence[tuple[str, str]]


def task_groups(app: App[object], owner: type[DOMNode]) -> list[KeyGroup]:
    """Return the keys of a class by task."""
    task_of = {name: task for task, names in TASKS.items() for name in names.split()}
    titles = dict.fromkeys([*TASKS, _OTHERS])

    def is_of(title: str) -> Callable[[Binding], bool]:
        return lambda each: task_of.get(each.action.partition("(")[0], _OTHERS) == title

    return [key_group(app, title, owner, holds=is_of(title)) for title in titles]


def key_group(
    app: App[object],
    title: str,
    *owners: type[DOMNode],
    holds: Callable[[Binding], bool] = lambda each: True,
) -> KeyGroup:
    """Return the keys in the bindings of some classes."""
    bindings = [binding for owner in owners for binding in _bindings(owner.BINDINGS)]
    chosen = [each for each in bindings if each.description and holds(each)]
    named = [(_keys_of(app, each), each.description) for each in chosen]
    return KeyGroup(title, list(dict.fromkeys(named)))


def _bindings(given: Iterable[BindingType]) -> Iterable[Binding]:
    return (each if isinstance(each, Binding) else Binding(*each) for each in given)


def _keys_of(app: App[object], binding: Binding) -> str:
    """Return the keys of a binding in readable form."""
    if binding.key_display:
        return binding.key_display
    single = [Binding(key.strip(), "") for key in binding.key.split(",")]
    return ", ".join(app.get_key_display(each) for each in single)


class HelpPanel(Panel[None]):
    """All keys, by task and pane."""

    DEFAULT_CSS = """
    HelpPanel Input, HelpPanel Input:focus {
        height: 1; border: none; padding: 0; background: $panel;
    }
    """

    def __init__(self, groups: Sequence[KeyGroup]) -> None:
        super().__init__("Keys", "type to search, Esc closes")
        self._groups = groups
        self._list = LineList()

    def contents(self) -> Iterable[Widget]:
        """Return the search and the list of keys."""
        yield Input(placeholder="search", id="help-search")
        yield self._list

    def on_mount(self) -> None:
        """Begin with all keys."""
        self.query_one(Input).focus()

    def on_resize(self, event: Resize) -> None:
        """Arrange the keys for the new width."""
        self._show()

    @on(Input.Changed)
    def _show(self) -> None:
        words = self.query_one(Input).value.lower().split()
        blocks = [block for group in self._groups if (block := _block(group, words))]
        width = min(160, self.size.width * 96 // 100) - 4
        lines = _beside(blocks, width) if width >= _TWO_COLUMNS else _below(blocks)
        self._list.show(len(lines), lines.__getitem__)

    def key_down(self) -> None:
        """Scroll the keys, as the search line has the focus."""
        self._list.action_move(1)

    def key_up(self) -> None:
        """Scroll the keys back."""
        self._list.action_move(-1)

    def key_pagedown(self) -> None:
        """Scroll the keys by a screen."""
        self._list.action_move_pages(1)

    def key_pageup(self) -> None:
        """Scroll the keys back by a screen."""
        self._list.action_move_pages(-1)


def _block(group: KeyGroup, words: Sequence[str]) -> list[Text]:
    """Return the lines of a group with all words; none without such lines."""
    found = [
        Text.assemble(f"  {key:<{_KEY_COLUMNS}} ", what)
        for key, what in group.keys
        if all(word in f"{group.title} {key} {what}".lower() for word in words)
    ]
    return [Text(group.title, "bold"), *found, Text()] if found else []


def _below(blocks: Sequence[Sequence[Text]]) -> list[Text]:
    return [line for block in blocks for line in block]


def _beside(blocks: Sequence[Sequence[Text]], width: int) -> list[Text]:
    """Return the lines of blocks in two columns of about the same height."""
    half, left = sum(map(len, blocks)) / 2, 0
    height = 0
    while left < len(blocks) and height + len(blocks[left]) / 2 <= half:
        height += len(blocks[left])
        left += 1
    columns = _below(blocks[:left]), _below(blocks[left:])
    lines = []
    for row in range(max(map(len, columns))):
        one, other = (each[row] if row < len(each) else Text() for each in columns)
        one = one.copy()
        one.truncate(width // 2, pad=True)
        lines.append(Text.assemble(one, other))
    return lines
