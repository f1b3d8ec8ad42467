"""The commands by name: built-in ones, and installed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissector.cli.parsing.declarations import Command, Options
from dissector.cli.parsing.first_words import lead_of
from dissector.errors import UsageError, suggestion

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

Plugins = list[tuple[str, Callable[..., Any]]]
"""Additional commands: their names and functions."""

ENTRY_POINT_GROUP = "kafkashark.commands"
"""Entry points of this group are additional commands: functions with a parameter of `Options`."""

_OWN_PACKAGES = frozenset(
    (
        *("advise", "browse", "conform", "findings", "pipeline", "record", "replay", "report"),
        *("assistant", "exporter", "serve", "timeline", "wireshark"),
    )
)
"""Packages with commands of ours. Their names are common, so others may have them too."""

_INSTALL_FOLDER = Path(__file__).resolve().parents[3]
"""The folder of our packages."""


class CommandTable:
    """
    All commands.

    Args:
        builtin: The functions of built-in commands.
        plugins: Additional commands; None for the installed ones.
    """

    def __init__(
        self, builtin: Sequence[Callable[..., Any]], plugins: Plugins | None = None
    ) -> None:
        self._builtin = [each.__name__ for each in builtin]
        self._functions = {each.__name__: each for each in builtin} | dict(plugins or ())
        self._plugins = plugins
        self._entry_points: EntryPoints | None = None

    def find(self, name: str) -> Command:
        """
        Return a command.

        Raises:
            UsageError: There is none of that name, or it can't be loaded.
        """
        if name in self._functions:
            return Command.of(name, self._functions[name])
        for each in self._installed().select(name=name):
            return _loaded(each)
        cure = lead_of(name) or f"{suggestion(name, self.names())} (kafkashark --help)"
        raise UsageError(f"no command {name!r}{cure}")

    def has(self, name: str) -> bool:
        """Return whether there is a command of a name."""
        return name in self._functions or bool(self._installed().select(name=name))

    def is_builtin(self, words: Sequence[str]) -> bool:
        """Return whether words begin with a built-in command, which handles signals itself."""
        return bool(words) and words[0] in self._builtin

    def builtin(self) -> list[Command]:
        """Return the built-in commands."""
        return [self.find(name) for name in self._builtin]

    def names(self) -> list[str]:
        """Return the names of all commands."""
        return [*self._functions, *sorted(each.name for each in self._installed())]

    def all(self) -> list[Command]:
        """Return all commands, also those that can't be loaded."""
        return [self._found(name) for name in self.names()]

    def _found(self, name: str) -> Command:
        try:
            return self.find(name)
        except UsageError:
            return Command(name, "Can't be loaded.", Options, print)

    def _installed(self) -> EntryPoints:
        """Return the installed commands; to find them takes longer than all else here."""
        if self._entry_points is None:
            from importlib.metadata import EntryPoints, entry_points

            is_open = self._plugins is None
            self._entry_points = entry_points(group=ENTRY_POINT_GROUP) if is_open else EntryPoints()
        return self._entry_points


def _loaded(plugin: EntryPoint) -> Command:
    """Load a command; a module of a foreign package in place of ours is not executed."""
    package = plugin.module.partition(".")[0]
    file = _location(package)
    folder = Path(file).resolve().parent
    if package in _OWN_PACKAGES and file and folder != _INSTALL_FOLDER / package:
        raise UsageError(f"{plugin.name} can't be loaded: {file} hides the package")
    try:
        return Command.of(plugin.name, plugin.load())
    except (Exception, SystemExit) as error:  # a module of a foreign command may exit
        hint = f" ({package!r} is {file} here)" if file else ""
        message = f"{plugin.name} can't be loaded: {type(error).__name__}: {error}"
        raise UsageError(message + hint) from None


def _location(package: str) -> str:
    """Return the file of a package or module, or the folder of one without `__init__.py`."""
    spec = find_spec(package)
    folders = list((spec and spec.submodule_search_locations) or ())
    return (spec and spec.origin) or (folders[0] if folders else "")
