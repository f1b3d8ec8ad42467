"""Our declarations, by Kafka's names of messages."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from dissector.errors import DefinitionError
from dissector.protocol import apis, embedded, headers
from dissector.protocol.apis import NAMES, api, api_module
from dissector.protocol.definitions.definition_reader import Definition, read_definition
from dissector.protocol.definitions.files import definition_files
from dissector.protocol.schema import Field, Schema, Versions

APIS = Path(apis.__file__).parent
LOG_RECORDS = Path(embedded.__path__[0]) / "log_records"

OTHER_NAMES = {
    # Kafka 4.0 split the oldest versions into separate classes.
    "LegacyOffsetCommitKey": "OffsetCommitKey",
    "LegacyOffsetCommitValue": "OffsetCommitValue",
    "ControlRecordTypeSchema": "ControlRecordKey",
}
"""Kafka's name -> ours."""

NOT_READ = {
    "AbortedTxn": "a file of a broker",
    "QuorumStateData": "a file of a controller",
    "ProducerSnapshot": "a file of a broker",
    "SubscriptionInfoData": "user data of Kafka Streams",
}
"""Definitions that are never on the wire, or decoded by other code."""


@dataclass(frozen=True)
class Declared:
    """
    Place of a declaration.

    Attributes:
        name: Name of the variable.
        file: Its file, which may not exist yet; None if any file of its kind will do.
        schema: The declaration; None if there is none.
    """

    name: str
    file: Path | None
    schema: Schema | None


def definitions(source: str) -> Iterator[Definition]:
    """
    Yield the definitions in a JAR or folder, without removed versions and unsupported messages.

    Raises:
        UsageError: There are no definitions.
        DefinitionError: A definition is invalid; the message begins with its file.
    """
    for file in definition_files(source):
        if file.content is None:
            raise DefinitionError("it is too large, or damaged", file.name)
        try:
            definition = read_definition(file.content)
        except DefinitionError as error:
            raise DefinitionError(str(error), file.name) from None
        if set(definition.schema.versions) and definition.name not in NOT_READ:
            yield definition


def declared(definition: Definition) -> Declared:
    """Return the place where a definition is declared, or should be."""
    if definition.kind in ("request", "response"):
        return _api(definition)
    name = OTHER_NAMES.get(definition.name, definition.name)
    for module in (headers, *_embedded()):
        if isinstance(schema := vars(module).get(name), Schema):
            return Declared(name, Path(str(module.__file__)), schema)
    return Declared(name, None, None)


def api_file(name: str) -> Path:
    """Return the file of an API, which may not exist yet."""
    return APIS / f"{api_module(name).replace('.', '/')}.py"


def _api(definition: Definition) -> Declared:
    key = definition.schema.key
    assert key is not None
    name = definition.name.removesuffix("Request").removesuffix("Response")
    file = api_file(name)
    found = api(key) if NAMES.get(key) == name else None
    schema = found and (found.request if definition.kind == "request" else found.response)
    return Declared(definition.name, file, schema)


def _embedded() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(embedded.__path__, f"{embedded.__name__}."):
        yield importlib.import_module(module.name)


def as_declared(definition: Definition) -> Schema:
    """
    Return a definition's schema with our versions.

    Before Kafka 4.0 the int16 before a coordinator's key was its version, since then its kind; our
    versions of keys are that number.
    """
    schema = definition.schema
    if definition.name.startswith("Legacy"):
        return replace(schema, key=None)
    if definition.kind != "coordinator-key" or schema.key is None:
        return schema
    versions = Versions(schema.key, schema.key)
    return replace(schema, versions=versions, fields=_at_all_versions(schema.fields))


def _at_all_versions(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(
        replace(
            each,
            versions=Versions.of("0+" if 0 in each.versions else "none"),
            null=Versions.of("0+" if 0 in each.null else "none"),
            fields=_at_all_versions(each.fields),
        )
        for each in fields
    )
