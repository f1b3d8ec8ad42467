"""Formats that a user gives for topics: `orders=avro:order.avsc`, `*.key=text`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

from dissector.errors import UsageError
from dissector.values.binary_values import cbor_value, msgpack_value
from dissector.values.carriers.carried_schema import MessageChoice, MessagePlace, NamedMessage
from dissector.values.carriers.schema_prefixes import schemas_in_prefix
from dissector.values.json_values import json_value
from dissector.values.schemas.known_schema import (
    AVRO,
    PLAIN_JSON,
    PROTOBUF,
    Decoder,
    KnownSchema,
    Origin,
)
from dissector.values.schemas.schema_files import read_schema_file
from dissector.values.source_options import file_and_message
from dissector.values.value_limits import SchemaProblem, ValueProblem

Read: TypeAlias = Callable[[bytes], tuple[Any, Origin | None]]
"""Decodes a key or value, and returns where its parts can be found."""

_KEY, _VALUE = ".key", ".value"
_WITH_FILE = {"avro": AVRO, "protobuf": PROTOBUF}


@dataclass(frozen=True, slots=True)
class GivenFormat:
    """
    A format for the keys or values of some topics.

    Attributes:
        pattern: Of the topics' names, with `*` and `?`.
        is_key: Whether it is for their keys.
        format: Its name.
        label: The file of its schema, if any.
        read: Decodes; raises `ValueProblem`.
    """

    pattern: str
    is_key: bool
    format: str
    label: str | None
    read: Read


class TopicFormats:
    """The formats by topic; the first that fits counts."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        """
        Read the formats, and the files that they name.

        Raises:
            UsageError: One is not a format, or its file is not a schema.
        """
        self._given = [_parse(text) for text in texts]
        self._found: dict[tuple[str | None, bool], GivenFormat | None] = {}

    def find(self, topic: str | None, *, is_key: bool) -> GivenFormat | None:
        """Return the format of a topic's keys or values; None without one."""
        if not self._given:
            return None
        place = topic, is_key
        if place not in self._found:
            fitting = (
                each
                for each in self._given
                if each.is_key == is_key and fnmatchcase(topic or "", each.pattern)
            )
            self._found[place] = next(fitting, None)
        return self._found[place]


def _parse(text: str) -> GivenFormat:
    pattern, equals, chosen = text.partition("=")
    if not equals or not pattern or not chosen:
        raise UsageError(f"--value-format {text}: write TOPIC=FORMAT or TOPIC.key=FORMAT")
    is_key = pattern.endswith(_KEY)
    pattern = pattern.removesuffix(_KEY) if is_key else pattern.removesuffix(_VALUE)
    name, _, file = chosen.partition(":")
    if name in _WITH_FILE:
        if not file:
            raise UsageError(f"--value-format {text}: {name} needs a schema, {name}:FILE")
        file, message = file_and_message(file)
        path = Path(file)
        schema_text, imported = read_schema_file(_WITH_FILE[name], path, path.parent)
        schema = KnownSchema(_WITH_FILE[name], schema_text, [(file, 0)], imported)
        return GivenFormat(pattern, is_key, name, file, _by_schema(schema, message, text))
    if name not in _PLAIN or file:
        known = ", ".join((*_PLAIN, *(f"{each}:FILE" for each in _WITH_FILE)))
        raise UsageError(f"--value-format {text}: no format {chosen}; formats are {known}")
    return GivenFormat(pattern, is_key, name, None, _PLAIN[name])


def _by_schema(schema: KnownSchema, message: str, text: str) -> Read:
    chosen: MessageChoice = message or MessagePlace.FIRST
    try:
        decoder = schema.decoder
        decoder.check(chosen)
    except SchemaProblem as problem:
        raise UsageError(f"--value-format {text}: {problem}") from None

    def read(data: bytes) -> tuple[Any, Origin]:
        """Return a value, also of one that a registry's id precedes."""
        try:
            return decoder.value(data, 0, chosen), (decoder, data, 0, chosen)
        except ValueProblem as problem:
            for carried in schemas_in_prefix(data) if data else ():
                _, content, at, before, _ = carried
                of_prefix = NamedMessage(message, before) if message else before
                try:
                    value = decoder.value(content, at, of_prefix)
                except ValueProblem:
                    continue
                return value, (decoder, content, at, of_prefix)
            raise problem from None

    return read


def _plain(value: Callable[[bytes], Any], decoder: Decoder | None = None) -> Read:
    def read(data: bytes) -> tuple[Any, Origin | None]:
        origin = None if decoder is None else (decoder, data, 0, MessagePlace.FIRST)
        return value(data), origin

    return read


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueProblem(f"byte {error.start:,} is not UTF-8") from None


def _hex(data: bytes) -> str:
    return data.hex()


_PLAIN: dict[str, Read] = {
    "json": _plain(json_value, PLAIN_JSON),
    "text": _plain(_text),
    "hex": _plain(_hex),
    "cbor": _plain(cbor_value),
    "msgpack": _plain(msgpack_value),
}
