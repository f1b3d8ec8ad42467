"""`kafkashark config`: the settings that hold, where each is from, and their JSON schema."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dissector.cli.output import write_lines
from dissector.cli.parsing.declarations import Command, Option, ValueType
from dissector.cli.settings.given_settings import setting_value
from dissector.cli.settings.known_settings import (
    check_names,
    check_own,
    own_settings,
    shared_settings,
)
from dissector.cli.settings.saved_filters import FILTERS, saved_filters, with_saved_filters
from dissector.cli.settings.settings_file import SettingsFile, settings_file
from dissector.file_roles import Reads
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.view.tables.row_formats import table_lines
from dissector.view.text.value_text import json_text

if TYPE_CHECKING:
    from dissector.cli.declared.file_options import ConfigOptions
    from dissector.cli.parsing.command_table import CommandTable

COLUMNS = ("setting", "value", "from")

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def print_settings(given: ConfigOptions, table: CommandTable) -> None:
    """
    Print the settings that hold in the current folder, without credentials, or all as a schema.

    Raises:
        UsageError: A setting does not exist, or is of the wrong type.
    """
    if given.json_schema:
        write_lines(iter([json_text(json_schema(table))]), given.output)
        return
    rows = [mask_texts(row) for row in _rows(settings_file(), table)]
    if given.form == "ndjson":
        write_lines((json_text(row) for row in rows), given.output)
    elif rows:
        texts = [{**row, "value": _text(row["value"])} for row in rows]
        write_lines(table_lines(iter(texts), list(COLUMNS)), given.output)
    else:
        hint = "no settings: neither kafkashark.toml nor [tool.kafkashark] in pyproject.toml here"
        write_lines(iter([f"{hint} or above"]), given.output)


def _rows(settings: SettingsFile, table: CommandTable) -> Iterator[dict[str, Any]]:
    """Yield a row for each setting, all of them checked."""
    file = str(settings.path)
    check_names(settings, table)
    shared = shared_settings(table)
    for key, (declared, of) in shared.items():
        variable = _variable(declared)
        if value := os.environ.get(variable, ""):
            yield dict(zip(COLUMNS, (key, value.split(os.pathsep), f"${variable}"), strict=True))
        elif key in settings.table:
            value = setting_value(settings, key, settings.table[key], declared, of)
            yield dict(zip(COLUMNS, (key, value, file), strict=True))
    for command in table.all():
        if command.name not in settings.table:
            continue
        check_own(settings, command)
        known = own_settings(command)
        for key, given in settings.table_of(command.name).items():
            place = f"{command.name}.{key}"
            if isinstance(given, dict):
                for name, number in given.items():
                    yield dict(zip(COLUMNS, (f"{place}.{name}", number, file), strict=True))
            else:
                value = setting_value(settings, place, given, *known[key])
                yield dict(zip(COLUMNS, (place, value, file), strict=True))
    for name in saved_filters(settings):
        text = with_saved_filters(f"@{name}")[1:-1]
        yield dict(zip(COLUMNS, (f"{FILTERS}.{name}", text, file), strict=True))


def _variable(declared: Option) -> str:
    return declared.role.variable if isinstance(declared.role, Reads) else ""


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def json_schema(table: CommandTable) -> dict[str, Any]:
    """Return the JSON schema of a settings file."""
    filters = {"type": "object", "additionalProperties": {"type": "string"}}
    tables = {each.name: found for each in table.all() if (found := _command_schema(each))}
    return {
        "$schema": DIALECT,
        "title": "Settings of kafkashark",
        **_object(_properties(shared_settings(table)) | {FILTERS: filters} | tables),
    }


def _command_schema(command: Command) -> dict[str, Any]:
    """Return the schema of a command's table; empty if it takes no settings."""
    numbers = {
        name: _object(
            {
                key: {"type": "number", "minimum": 0, "default": value}
                for key, value in found.items()
            }
        )
        for name, found in command.options.number_tables().items()
    }
    properties = _properties(own_settings(command)) | numbers
    return _object(properties) if properties else {}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": dict(properties)}


def _properties(known: Mapping[str, tuple[Option, ValueType]]) -> dict[str, Any]:
    return {
        key: {"description": declared.help, **_type(declared, of)}
        for key, (declared, of) in known.items()
    }


_TYPES = {bool: "boolean", int: "integer", float: "number"}


def _type(declared: Option, of: ValueType) -> dict[str, Any]:
    item: dict[str, Any] = {"type": _TYPES.get(of.each, "string")}
    limits = {"enum": declared.choices, "minimum": declared.least, "maximum": declared.most}
    item |= {name: value for name, value in limits.items() if value not in (None, ())}
    takes_array = of.is_list or "," in declared.metavar
    return {"anyOf": [item, {"type": "array", "items": item}]} if takes_array else item
