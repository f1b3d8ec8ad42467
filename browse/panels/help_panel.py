"""The help: each key of the app and its panes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.widget import Widget

from browse.panels.line_list import LineList
from browse.panels.panel import Panel

_KEY_COLUMNS = 18


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """
    The keys of one pane.

    Attributes:
        title: Name of the pane, such as `List`.
        keys: The keys and their actions.
    """

    title: str
    keys: Sequence[tuple[str, str]]


def key_group(app: App[object], title: str, *owners: type[DOMNode]) -> KeyGroup:
    """Return the keys in the bindings of some classes."""
    bindings = [binding for owner in owners for binding in _bindings(owner.BINDINGS)]
    named = [(_keys_of(app, each), each.description) for each in bindings if each.description]
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
    """All keys, by pane."""

    def __init__(self, groups: Sequence[KeyGroup]) -> None:
        super().__init__("Keys")
        self._lines: list[Text] = []
        for group in groups:
            self._lines += [Text(group.title, "bold"), *map(_line, group.keys), Text()]

    def contents(self) -> Iterable[Widget]:
        """Return the list of keys."""
        yield LineList(len(self._lines), self._lines.__getitem__)


def _line(key: tuple[str, str]) -> Text:
    return Text.assemble(f"  {key[0]:<{_KEY_COLUMNS}} ", key[1])
