"""
Convert one of Kafka's message definitions, JSON with comments, to a `Schema`.

Source: Kafka, clients/src/main/resources/common/message/README.md and the generator
(`MessageSpec`, `FieldSpec`, `StructRegistry`, `Versions`); KIP-482 (tagged fields).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from dissector.errors import DefinitionError
from dissector.protocol.definitions.defaults import default_of
from dissector.protocol.schema import Field, Schema, Versions

MAX_VERSION = 1000
MAX_DEPTH = 32
MAX_FIELDS = 10_000
"""Most fields of one message; a common struct counts at each use."""

TYPES = frozenset(
    (
        *("bool", "int8", "int16", "int32", "int64", "uint16", "uint32"),
        *("uuid", "float64", "string", "bytes", "records"),
    )
)
_NULLABLE = frozenset(("string", "bytes", "records", "struct"))
_KINDS = frozenset(
    (
        *("request", "response", "header", "metadata", "data"),
        *("coordinator-key", "coordinator-value"),
    )
)
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_VERSIONS = re.compile(r"\d{1,5}(?:\+|-\d{1,5})?")
_DIGITS = re.compile(r"\d{1,9}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")


@dataclass(frozen=True, slots=True)
class Definition:
    """
    A definition of one message.

    Attributes:
        name: `FetchRequest`.
        kind: `request`, `response`, `header`, `metadata` (KRaft's records), `data`,
            `coordinator-key` or `coordinator-value`.
        schema: Its versions and fields; the schema's key is the definition's `apiKey`.
        listeners: The servers that accept the request: `broker`, `controller`.
        unstable: Whether the newest version may still change.
    """

    name: str
    kind: str
    schema: Schema
    listeners: tuple[str, ...] = ()
    unstable: bool = False


def read_definition(content: bytes) -> Definition:
    """
    Read the bytes of a definition.

    Raises:
        DefinitionError: They are not a valid definition.
    """
    spec = _parsed(content)
    name, kind = _text(spec, "name", ""), _text(spec, "type", "")
    if kind not in _KINDS:
        raise DefinitionError(f"{kind!r} is not a type of message")
    key = _number(spec, "apiKey", name)
    if key is not None and key > 0x7FFF:
        raise DefinitionError(f"apiKey {key} is above 32767")
    if key is None and kind in ("request", "response"):
        raise DefinitionError(f"a {kind} must have an apiKey")
    versions = _versions(spec, "validVersions", name)
    if versions.high > MAX_VERSION:
        raise DefinitionError(f"validVersions must not exceed {MAX_VERSION}", name)
    removed = versions.low > versions.high
    flexible = _versions(spec, "flexibleVersions", name, "none" if removed else None)
    fields = _FieldReader(spec).fields(_list(spec, "fields", name), name)
    listeners = tuple(map(str, _list(spec, "listeners", name)))
    unstable = spec.get("latestVersionUnstable") is True
    return Definition(name, kind, Schema(key, versions, flexible, fields), listeners, unstable)


def _parsed(content: bytes) -> dict[str, Any]:
    """Parse JSON with comments; comments are blanked, so that line numbers stay the same."""
    try:
        text = _COMMENT.sub(_blank, content.decode("utf-8-sig"))
        spec = json.loads(text)
    except UnicodeDecodeError as error:
        raise DefinitionError("not UTF-8", f"byte {error.start}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise DefinitionError(f"not JSON: {error.msg}", place) from None
    except RecursionError:
        raise DefinitionError("JSON is nested too deeply") from None
    if not isinstance(spec, dict):
        raise DefinitionError("not a message definition: a JSON object is expected")
    return spec


def _blank(match: re.Match[str]) -> str:
    if match[1]:
        return match[1]
    return " " + "\n" * match[0].count("\n")


class _FieldReader:
    """Reads the fields of one message; each common struct is read once."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._specs: dict[str, dict[str, Any]] = {}
        self._common_structs: dict[str, tuple[Field, ...]] = {}
        self._being_read: list[str] = []
        self._sizes: dict[int, int] = {}
        for each in _list(spec, "commonStructs", ""):
            name = _text(_object(each, "commonStructs"), "name", "commonStructs")
            if name in self._specs:
                raise DefinitionError(f"two common structs are named {name}", "commonStructs")
            self._specs[name] = each
        for name in self._specs:
            self._common_struct(name, "commonStructs")

    def fields(self, specs: list[Any], place: str) -> tuple[Field, ...]:
        """Return the fields of a struct."""
        if place.count(".") > MAX_DEPTH:
            raise DefinitionError(f"structs nested deeper than {MAX_DEPTH}", place)
        found: list[Field] = []
        for spec in specs:
            found += self._field(_object(spec, place), place)
        _check_unique(found, place)
        out = tuple(found)
        self._sizes[id(out)] = size = sum(1 + self._size(each) for each in out)
        if size > MAX_FIELDS:
            raise DefinitionError(f"more than {MAX_FIELDS:,} fields", place)
        return out

    def _size(self, each: Field) -> int:
        return self._sizes[id(each.fields)] if each.fields else 0

    def _field(self, spec: dict[str, Any], place: str) -> list[Field]:
        """Return a field; as two fields if it is tagged in only some of its versions."""
        kafka = _text(spec, "name", place)
        place = f"{place}.{kafka}"
        if not _NAME.fullmatch(kafka):
            raise DefinitionError("not a valid field name", place)
        word, fields = self._type(spec, place)
        nullable = _versions(spec, "nullableVersions", place, "none")
        if nullable.low <= nullable.high and not word.startswith("[]") and word not in _NULLABLE:
            raise DefinitionError(f"{word} can't be null", place)
        name = snake_case(kafka)
        field = Field(
            name=name,
            type=word,
            versions=_versions(spec, "versions", place, spec.get("taggedVersions")),
            null=nullable,
            default=default_of(spec.get("default"), word, place),
            ignorable=spec.get("ignorable") is True,
            key=spec.get("mapKey") is True,
            entity=str(spec.get("entityType", "")),
            classic=spec.get("flexibleVersions") == "none",
            fields=fields,
        )
        if field.kafka_name != kafka:
            field = replace(field, kafka=kafka)
        return _with_tag(field, spec, place)

    def _type(self, spec: dict[str, Any], place: str) -> tuple[str, tuple[Field, ...]]:
        """Return our name of a type, and the fields if it is a struct."""
        word = _text(spec, "type", place)
        item = word.removeprefix("[]")
        array = "[]" if item != word else ""
        if item in TYPES:
            return word, ()
        if not item[:1].isupper():
            raise DefinitionError(f"{word} is not a type", place)
        if item in self._specs:
            if spec.get("fields"):
                raise DefinitionError(
                    f"{item} is a common struct and can't have fields here", place
                )
            return f"{array}struct", self._common_struct(item, place)
        if "fields" not in spec:
            raise DefinitionError(f"no struct is named {item}", place)
        return f"{array}struct", self.fields(_list(spec, "fields", place), place)

    def _common_struct(self, name: str, place: str) -> tuple[Field, ...]:
        if name in self._being_read:
            cycle = " > ".join([*self._being_read[self._being_read.index(name) :], name])
            raise DefinitionError(f"a struct contains itself: {cycle}", place)
        if name not in self._common_structs:
            self._being_read.append(name)
            self._common_structs[name] = self.fields(_list(self._specs[name], "fields", name), name)
            self._being_read.pop()
        return self._common_structs[name]


def _with_tag(field: Field, spec: dict[str, Any], place: str) -> list[Field]:
    tagged = _versions(spec, "taggedVersions", place, "none")
    tag = _number(spec, "tag", place)
    if (tag is None) != (tagged.low > tagged.high):
        raise DefinitionError("tag and taggedVersions must occur together", place)
    if tag is None:
        return [field]
    versions = field.versions
    if tagged.low <= versions.low and tagged.high >= versions.high:
        return [replace(field, tag=tag)]
    if tagged.low <= versions.low or tagged.high < versions.high:
        raise DefinitionError(
            "taggedVersions must begin within versions and end where they end", place
        )
    return [
        replace(field, versions=Versions(versions.low, tagged.low - 1)),
        replace(field, versions=Versions(tagged.low, versions.high), tag=tag),
    ]


def _check_unique(fields: list[Field], place: str) -> None:
    """Raise if two fields have the same name or tag in one version."""
    for number, each in enumerate(fields):
        for other in fields[:number]:
            same = each.name == other.name or (each.tag is not None and each.tag == other.tag)
            low = max(each.versions.low, other.versions.low)
            if same and low <= min(each.versions.high, other.versions.high):
                what = f"{other.kafka_name} has the same name or tag in version {low}"
                raise DefinitionError(what, f"{place}.{each.kafka_name}")


def snake_case(kafka: str) -> str:
    """Return a name of Kafka in snake_case, as in our declarations: `TopicId` is `topic_id`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kafka).lower()


def _versions(spec: dict[str, Any], name: str, place: str, absent: str | None = None) -> Versions:
    text = spec.get(name, absent)
    if text == "none":
        return Versions.of("none")
    if not isinstance(text, str) or not _VERSIONS.fullmatch(text.strip()):
        raise DefinitionError(
            f"{name} {text!r} is not a version range (like 3+, 0-12, 4, none)", place
        )
    versions = Versions.of(text.strip())
    if versions.low > versions.high:
        raise DefinitionError(f"{name} {text!r} ends before it begins", place)
    return versions


def _number(spec: dict[str, Any], name: str, place: str) -> int | None:
    """Return a number, which may be written as text; None if it is absent."""
    value = spec.get(name)
    number = int(value) if isinstance(value, str) and _DIGITS.fullmatch(value) else value
    if value is not None and not (type(number) is int and 0 <= number < 1 << 31):
        raise DefinitionError(f"{name} {value!r} is not a non-negative number", place)
    return number


def _text(spec: dict[str, Any], name: str, place: str) -> str:
    value = spec.get(name)
    if not isinstance(value, str) or not value:
        what = "is missing" if value is None else "is not a text"
        raise DefinitionError(f"{name!r} {what}", place)
    return value.strip()


def _list(spec: dict[str, Any], name: str, place: str) -> list[Any]:
    value = spec.get(name, [])
    if not isinstance(value, list):
        raise DefinitionError(f"{name!r} is not a list", place)
    return value


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DefinitionError("a JSON object is expected", place)
    return value
