"""What the settings give the options of a command."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dissector.cli.parsing.command_line import converted
from dissector.cli.parsing.declarations import Command, Option, ValueType, value_types
from dissector.cli.settings.known_settings import check_names, check_own
from dissector.cli.settings.settings_file import SettingsFile, settings_file
from dissector.errors import UsageError
from dissector.file_roles import READS, NamedPath, Reads

if TYPE_CHECKING:
    from dissector.cli.parsing.command_table import CommandTable


def settings_of(command: Command, table: CommandTable) -> Mapping[str, Any]:
    """
    Return the values that the settings of the current folder give a command, by attribute.

    A value in the table of the command counts before one for all; an environment variable of an
    option counts before both.

    Raises:
        UsageError: A setting does not exist, or is of the wrong type.
    """
    settings = settings_file()
    if settings.path is None:
        return {}
    check_names(settings, table)
    check_own(settings, command)
    return dict(_option_values(settings, command))


def settings_paths() -> list[NamedPath]:
    """Return the settings file of the current folder, which every command reads."""
    path = settings_file().path
    return [] if path is None else [NamedPath(str(path), "settings", READS)]


def _option_values(settings: SettingsFile, command: Command) -> Iterator[tuple[str, Any]]:
    """Yield attribute and value of the options that settings give a command."""
    types = value_types(command.options)
    own = settings.table_of(command.name)
    for name, each in command.options.declared().items():
        if not each.setting or _has_variable(each):
            continue
        if each.key in own:
            key = f"{command.name}.{each.key}"
            yield name, setting_value(settings, key, own[each.key], each, types[name])
        elif each.setting == "shared" and each.key in settings.table:
            given = settings.table[each.key]
            yield name, setting_value(settings, each.key, given, each, types[name])


def _has_variable(declared: Option) -> bool:
    role = declared.role
    return isinstance(role, Reads) and bool(role.variable and os.environ.get(role.variable))


def setting_value(
    settings: SettingsFile, key: str, given: Any, declared: Option, of: ValueType
) -> Any:
    """
    Return the value of an option from that of a setting.

    Raises:
        UsageError: It is of the wrong type.
    """
    if of.each is bool:
        if not isinstance(given, bool):
            raise settings.error(key, "must be true or false")
        return given
    items = given if isinstance(given, list) else [given]
    for item in items:
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise settings.error(key, "must be a text, a number, or an array of them")
    texts = [_placed(settings.folder, str(item), declared) for item in items]
    if not of.is_list and "," in declared.metavar:
        texts = [",".join(texts)]  # as --columns packet,api
    elif not of.is_list and len(texts) != 1:
        raise settings.error(key, "must be one value, no array")
    try:
        values = tuple(converted(declared, of, text) for text in texts)
    except UsageError as error:
        raise settings.error(key, str(error)) from None
    return values if of.is_list else values[0]


def _placed(folder: Path, text: str, declared: Option) -> str:
    """Return a text with its path, if it has one, relative to the current folder."""
    if not isinstance(declared.role, Reads):
        return text
    path = text if declared.role.path_in is None else declared.role.path_in(text)
    if not path or "://" in path:
        return text
    return text.replace(path, str(folder / Path(path).expanduser()), 1)
