"""Writes declarations of a release into our files."""

from __future__ import annotations

import re
import runpy
from dataclasses import dataclass
from pathlib import Path

from dissector.protocol.apis import NAMES, module_name
from dissector.protocol.definitions.definition_reader import Definition
from dissector.protocol.schema import Schema
from tools.release.declaration_diff import differences
from tools.release.declaration_merge import merged
from tools.release.declaration_source import declaration, import_of, replaced, save
from tools.release.our_declarations import APIS, LOG_RECORDS, Declared, api_file

_ENTRY = re.compile(r'    (\d+): "[\w.]+",\n')


@dataclass(frozen=True)
class Change:
    """A message with differences in a release."""

    definition: Definition
    declared: Declared
    schema: Schema
    """The release's declaration, with our versions."""


class TakeError(Exception):
    """A file could not be written as declared in the release."""


def take(change: Change) -> list[Path]:
    """
    Write one message into its file; return the changed files.

    Raises:
        TakeError: The written declaration differs from the release's.
    """
    ours, name = change.declared.schema, change.declared.name
    file = change.declared.file or LOG_RECORDS / f"{module_name(name)}.py"
    fields_before = ours.fields if ours else ()
    before = ours or Schema(change.schema.key, change.schema.versions, change.schema.flexible)
    head, fields = merged(before, change.schema)
    changed = [file]
    if ours is not None:
        text = replaced(file.read_text(encoding="utf-8"), name, fields_before, head, fields)
    else:
        text = file.read_text(encoding="utf-8") if file.exists() else _card(change.definition)
        text += "\n" + declaration(name, head, fields)
        changed += _named(change.definition)
    save(file, text)
    written = runpy.run_path(str(file))[name]
    if left := list(differences(name, written, change.schema)):
        raise TakeError(f"{file}: {left[0]}")
    return changed


def _card(definition: Definition) -> str:
    """Return the beginning of a new file; a person completes the purpose."""
    source, what = f"{definition.name}.json", definition.name
    if definition.kind in ("request", "response"):
        name = _api_of(definition)
        what = f"{name} (key {definition.schema.key})"
        source = f"{name}Request.json and {name}Response.json"
    return f'"""\n{what}: ...\n\nSource: Kafka, {source}.\n"""\n\n{import_of({"message"})}'


def _named(definition: Definition) -> list[Path]:
    """Register a new API, in place of another one with its key; return the changed file."""
    if definition.kind not in ("request", "response"):
        return []
    file, key, name = APIS / "__init__.py", definition.schema.key, _api_of(definition)
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    places = {int(found[1]): at for at, each in enumerate(lines) if (found := _ENTRY.match(each))}
    assert key is not None
    line = f'    {key}: "{name}",\n'
    if NAMES.get(key) == name or lines[places.get(key, 0)] == line:
        return []
    old = api_file(NAMES.get(key, name))
    changed = [file]
    if key in places:
        lines[places[key]] = line
        if old.exists() and old != api_file(name):
            old.unlink()
            changed.append(old)
    else:
        before = [at for each, at in places.items() if each < key]
        lines.insert(max(before, default=min(places.values()) - 1) + 1, line)
    file.write_text("".join(lines), encoding="utf-8")
    return changed


def _api_of(definition: Definition) -> str:
    return definition.name.removesuffix("Request").removesuffix("Response")
