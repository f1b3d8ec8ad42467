"""The settings that exist: they are the options that say so in their declarations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dissector.cli.parsing.declarations import Command, Option, ValueType, value_types
from dissector.cli.settings.saved_filters import FILTERS
from dissector.cli.settings.settings_file import SettingsFile
from dissector.errors import suggestion

if TYPE_CHECKING:
    from dissector.cli.parsing.command_table import CommandTable


def shared_settings(table: CommandTable) -> dict[str, tuple[Option, ValueType]]:
    """Return the settings for all commands by key: those that built-in commands declare."""
    return {
        each.key: (each, of)
        for command in table.builtin()
        for each, of in _settable(command)
        if each.setting == "shared"
    }


def own_settings(command: Command) -> dict[str, tuple[Option, ValueType]]:
    """Return the settings in the table of a command by key."""
    return {each.key: (each, of) for each, of in _settable(command)}


def _settable(command: Command) -> Iterable[tuple[Option, ValueType]]:
    types = value_types(command.options)
    declared = command.options.declared().items()
    return [(each, types[name]) for name, each in declared if each.setting]


def check_names(settings: SettingsFile, table: CommandTable) -> None:
    """
    Check the names of the tables, and of the settings for all commands.

    Raises:
        UsageError: There is no such setting or command.
    """
    tables, known = {FILTERS, *table.names()}, shared_settings(table)
    for key, value in settings.table.items():
        is_table = isinstance(value, dict)
        if key not in (tables if is_table else known):
            what = "no such command" if is_table else "no such setting"
            raise settings.error(key, what + suggestion(key, [*tables, *known]))


def check_own(settings: SettingsFile, command: Command) -> None:
    """
    Check the names in the table of a command, and its tables of numbers.

    Raises:
        UsageError: A name does not exist, or a value is no number.
    """
    known, numbers = own_settings(command), command.options.number_tables
    for key, value in settings.table_of(command.name).items():
        place = f"{command.name}.{key}"
        if isinstance(value, dict):
            _check_numbers(settings, place, value, numbers())
        elif key not in known:
            raise settings.error(place, "no such setting" + suggestion(key, known))


def _check_numbers(
    settings: SettingsFile, place: str, given: Mapping[str, Any], known: Mapping[str, Any]
) -> None:
    """Check a table of numbers, such as the thresholds of an advice."""
    name = place.partition(".")[2]
    if name not in known:
        raise settings.error(place, "no such table" + suggestion(name, known))
    for key, value in given.items():
        if key not in known[name]:
            raise settings.error(f"{place}.{key}", "no such number" + suggestion(key, known[name]))
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number and math.isfinite(value) and value >= 0):
            raise settings.error(f"{place}.{key}", f"must be a number from 0 on, not {value!r}")
