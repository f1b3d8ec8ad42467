"""
Compares the declarations of Kafka releases with ours.

    python -m tools.release JAR...            prints each difference
    python -m tools.release --write JAR...    applies them to dissector/protocol
    python -m tools.release --newest          reports newer releases on Maven
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dissector.errors import DissectorError
from dissector.protocol.apis import NAMES
from dissector.protocol.definitions.definition_reader import Definition
from tools.release.declaration_diff import differences
from tools.release.declaration_writer import Change, TakeError, take
from tools.release.our_declarations import Declared, as_declared, declared, definitions

ROOT = Path(__file__).parents[2]
_BY_HAND = """\
Left by hand: the words of each card and its KIP; entities (`entity=`); meanings of fields
(dissector/protocol/field_meanings.py); rules (conform/); then python -m tools.api_table --write.\
"""


def main(arguments: list[str] | None = None) -> int:
    """Compare; status 1 with differences, 2 with unreadable input."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.release",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="JAR",
        help="or a folder; kafka-clients, and those with records",
    )
    parser.add_argument("--write", action="store_true", help="change our declarations")
    parser.add_argument("--newest", action="store_true", help="ask Maven for a newer release")
    options = parser.parse_args(arguments)
    if bool(options.sources) == options.newest or (options.newest and options.write):
        parser.error("name JARs or folders, or say --newest")
    if options.newest:
        from tools.release.newest_release import news

        print(news())
        return 0
    try:
        return _compare(options.sources, options.write)
    except (DissectorError, TakeError) as error:
        print(f"tools.release: {error}", file=sys.stderr)
        return 2


def _compare(sources: list[str], write: bool) -> int:
    messages = lines = 0
    changes: list[Change] = []
    for source in sources:
        found = [(each, declared(each)) for each in definitions(source)]
        messages += len(found)
        for definition, ours in _placed(found):
            change = Change(definition, ours, as_declared(definition))
            if differences := list(_differences(change)):
                changes.append(change)
                lines += len(differences)
                print("\n".join(differences))
    if not changes:
        print(f"no difference in {messages} messages")
        return 0
    print(f"differences: {lines}, in {len(changes)} of {messages} messages")
    if write:
        written = dict.fromkeys(file for change in changes for file in take(change))
        for file in written:
            what = "written" if file.exists() else "removed"
            print(f"{what}: {file.relative_to(ROOT) if file.is_relative_to(ROOT) else file}")
        print(_BY_HAND)
    return 1


def _differences(change: Change) -> Iterator[str]:
    name, schema = change.definition.name, change.schema
    if change.declared.schema is not None:
        yield from differences(name, change.declared.schema, schema)
        return
    key = "" if schema.key is None else f", key {schema.key}"
    yield f"{name}: new, versions {schema.versions_text}{key}"
    if change.definition.kind == "request" and (other := NAMES.get(schema.key or 0)):
        yield f"{name}: key {schema.key} is declared as {other}"


def _placed(found: list[tuple[Definition, Declared]]) -> Iterator[tuple[Definition, Declared]]:
    """Assign a new record to the file of the previous record of its kind, or of the first."""
    files: dict[str, Path] = {}
    for definition, ours in reversed(found):
        if ours.file is not None:
            files[definition.kind] = ours.file
    for definition, ours in found:
        if ours.file is not None:
            files[definition.kind] = ours.file
            yield definition, ours
        else:
            yield definition, replace(ours, file=files.get(definition.kind))


if __name__ == "__main__":
    sys.exit(main())
