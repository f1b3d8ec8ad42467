"""Formats that a user gives for topics: `orders=avro:order.avsc`, `*.key=text`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from dissector.errors import UsageError
from dissector.small_files import read_small_text
from dissector.values.json_values import json_value
from dissector.values.schemas.known_schema import AVRO, PLAIN_JSON, Decoder, KnownSchema
from dissector.values.value_limits import SchemaProblem, ValueProblem

_KEY, _VALUE = ".key", ".value"
_WITH_FILE = {"avro": AVRO}


@dataclass(frozen=True, slots=True)
class GivenFormat:
    """
    A format for the keys or values of some topics.

    Attributes:
        pattern: Of the topics' names, with `*` and `?`.
        is_key: Whether it is for their keys.
        format: Its name.
        label: The file of its schema, if any.
        value: Decodes; raises `ValueProblem`.
        decoder: The decoder of its schema, if any.
    """

    pattern: str
    is_key: bool
    format: str
    label: str | None
    value: Callable[[bytes], Any]
    decoder: Decoder | None = None


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
        schema = KnownSchema(_WITH_FILE[name], read_small_text(file, "the schema "), [(file, 0)])
        decoder = _decoder(schema, text)
        return GivenFormat(
            pattern, is_key, name, file, lambda data: decoder.value(data, 0, b""), decoder
        )
    if name not in _PLAIN or file:
        known = ", ".join((*_PLAIN, *(f"{each}:FILE" for each in _WITH_FILE)))
        raise UsageError(f"--value-format {text}: no format {chosen}; formats are {known}")
    return GivenFormat(
        pattern, is_key, name, None, _PLAIN[name], PLAIN_JSON if name == "json" else None
    )


def _decoder(schema: KnownSchema, text: str) -> Decoder:
    try:
        return schema.decoder
    except SchemaProblem as problem:
        raise UsageError(f"--value-format {text}: {problem}") from None


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueProblem(f"byte {error.start:,} is not UTF-8") from None


def _hex(data: bytes) -> str:
    return data.hex()


_PLAIN: dict[str, Callable[[bytes], Any]] = {"json": json_value, "text": _text, "hex": _hex}
