"""Converts a request to another version of its API, if the target lacks the captured one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import UUID

from construct import Container

from cluster.conversion.change import Change
from cluster.conversion.resource_names import NO_ID, TopicDirectory
from cluster.conversion.version_table import (
    BATCHES_FROM,
    EMPTY_MEANS_ALL,
    FOLDS,
    LISTS,
    NO_LOSS,
    Fold,
)
from cluster.fields.batch_rewriter import to_record_batch
from cluster.fields.refusal import RewriteError, UnsupportedByTarget
from cluster.fields.roles import path_prefix
from dissector.protocol.api import Api
from dissector.protocol.codecs.compiled import UNKNOWN_TAGS
from dissector.protocol.field_meanings import meaning_of
from dissector.protocol.field_roles import Role
from dissector.protocol.headers import API_VERSIONS, PRODUCE
from dissector.protocol.schema import Field, Schema, split_tagged

DROPPED = "dropped"
"""The rule for a value that was dropped because the version has no field for it."""

REENCODED = "re-encoded"
"""The rule for records that were re-encoded in the format of the version."""


_NO_OLD_PRODUCE, _FIRST_WITH_BATCHES = 12, 3
"""Kafka 4 offers Produce from v0 on for librdkafka, but accepts only v3 and newer (KAFKA-18659)."""


def choose_version(found: Api, captured: int, offered: Mapping[int, tuple[int, int]]) -> int | None:
    """
    Return the version for a target; None if it offers none that we know.

    ApiVersions keeps its captured version, because it reports the versions.

    Args:
        found: The API.
        captured: The captured version.
        offered: The versions that the target offers: key -> (lowest, highest version).
    """
    if found.key == API_VERSIONS:
        return captured
    low, high = offered.get(found.key, (0, -1))
    if found.key == PRODUCE and high >= _NO_OLD_PRODUCE:
        low = max(low, _FIRST_WITH_BATCHES)
    return nearest_version(found.request, captured, low, high)


def nearest_version(schema: Schema, captured: int, low: int, high: int) -> int | None:
    """
    Return the version nearest to the captured one among those of both sides; None without one.

    Args:
        schema: The declaration.
        captured: The captured version.
        low: The lowest version of the target.
        high: Its highest version.
    """
    low, high = max(low, schema.versions.low), min(high, schema.versions.high)
    return min(max(captured, low), high) if low <= high else None


@cache
def names_topics_by_id(schema: Schema, version: int) -> bool:
    """Return whether a version identifies topics by id instead of by name."""
    return _names_topics_by_id(schema.fields, version)


def _names_topics_by_id(fields: tuple[Field, ...], version: int) -> bool:
    here = [field for field in fields if version in field.versions]
    has_id = any(_is_topic_id(field) for field in here)
    has_name = any(_is_topic_name(field) for field in here)
    return (has_id and not has_name) or any(_names_topics_by_id(f.fields, version) for f in here)


def convert(
    schema: Schema,
    body: Mapping[str, Any],
    old: int,
    new: int,
    topics: TopicDirectory,
    changes: list[Change],
    *,
    may_lose: bool = False,
) -> Container:
    """
    Convert a body to another version.

    Args:
        schema: The declaration.
        body: The body in the old version.
        old: The old version.
        new: The new version.
        topics: The directory for topic ids and names.
        changes: Receives the values dropped because the new version lacks their field.
        may_lose: Whether values that matter may be lost, as in responses to older clients.

    Raises:
        RewriteError: A value that matters would be lost, or a topic's id or name is unknown.
    """
    conversion = _Conversion(path_prefix(schema), old, new, topics, changes)
    conversion.may_lose = may_lose
    return conversion.body(schema, body)


class _Conversion:
    """A conversion of one API from one version to another."""

    def __init__(
        self, title: str, old: int, new: int, topics: TopicDirectory, changes: list[Change]
    ) -> None:
        self._title = title
        self._api = title.partition(".")[0]
        self._old = old
        self._new = new
        self._topics = topics
        self._changes = changes
        self.may_lose = False

    def body(self, schema: Schema, body: Mapping[str, Any]) -> Container:
        """Convert the whole body."""
        fold = FOLDS.get(self._title)
        body = dict(body)
        if fold is not None:
            before, after = (self._has(schema, fold.array, v) for v in (self._old, self._new))
            if before and not after:
                body = self._unfolded(schema, body, fold)
            elif after and not before:
                body = _folded(body, fold)
        return self._struct(schema.fields, self._listed(schema, body), "")

    def _has(self, schema: Schema, name: str, version: int) -> bool:
        return any(f.name == name and version in f.versions for f in schema.fields)

    def _unfolded(self, schema: Schema, body: dict[str, Any], fold: Fold) -> dict[str, Any]:
        """Move the fields of an array's only element into the body."""
        elements = body.pop(fold.array)
        if len(elements) != 1:
            raise self._lost(f"{fold.array} has {len(elements)} elements, and only one fits")
        (element,) = elements
        for name, inside in fold.fields.items():
            if not inside:
                body[name] = element
            elif inside in element:
                body[name] = element[inside]
        array = next(field for field in schema.fields if field.name == fold.array)
        for field in array.fields:
            if field.name not in fold.fields.values():
                self._drop(field, element.get(field.name, ...), fold.array)
        return body

    def _listed(self, schema: Schema, body: dict[str, Any]) -> dict[str, Any]:
        """Convert an array of names to one of structs, or the reverse."""
        names, structs, field = LISTS.get(self._api, ("", "", ""))
        if names in body and self._has(schema, structs, self._new):
            body[structs] = [Container({field: name}) for name in body.pop(names)]
        elif structs and structs in body and self._has(schema, names, self._new):
            body[names] = [self._name_of(each) for each in body.pop(structs)]
        return body

    def _struct(self, fields: tuple[Field, ...], body: Mapping[str, Any], path: str) -> Container:
        out = Container()
        plain, tagged = split_tagged(fields, self._new)
        here = plain + tagged
        for field in here:
            below = f"{path}.{field.name}" if path else field.name
            if field.name in body:
                out[field.name] = self._value(field, body[field.name], below)
            else:
                out[field.name] = self._absent(field, here, body)
        self._check_dropped(fields, here, body, path)
        if UNKNOWN_TAGS in body:
            out[UNKNOWN_TAGS] = body[UNKNOWN_TAGS]
        return out

    def _value(self, field: Field, value: Any, path: str) -> Any:
        if self._api in EMPTY_MEANS_ALL:
            value = self._all(value, path)
        if value is None:
            if self._new in field.null:
                return None
            if not self.may_lose:
                raise self._lost(f"{path} must not be null")
            return Field(field.name, field.type, fields=field.fields).zero(self._new)
        if field.type == "records":
            return self._records(value, path)
        if field.type == "struct":
            return self._struct(field.fields, value, path)
        if field.type == "[]struct":
            return [self._struct(field.fields, each, path) for each in value]
        return value

    def _all(self, value: Any, path: str) -> Any:
        """Convert between the two forms of `all`: an empty array or null."""
        name, version = EMPTY_MEANS_ALL[self._api]
        if path == name and self._old == version and value == []:
            return None
        if path == name and self._new == version:
            if value == []:
                raise self._lost(f"an empty {name} would request all")
            return [] if value is None else value
        return value

    def _records(self, data: bytes, path: str) -> bytes:
        """Convert message sets to record batches if the version requires them; add a change."""
        batches_from = BATCHES_FROM.get(self._api, 0)
        if self._new < batches_from <= self._old:
            raise self._lost("it has no record batches")
        if not self._old < batches_from <= self._new:
            return data
        written = to_record_batch(data)
        if written != data:
            forms = "message set", "record batch"
            self._changes.append(Change(path, Role.RECORDS, *forms, REENCODED))
        return written

    def _absent(self, field: Field, here: list[Field], body: Mapping[str, Any]) -> Any:
        """Return the value of a field that the old version does not have."""
        if _is_topic_name(field) and body.get("topic_id", NO_ID) != NO_ID:
            return self._name_of(body)
        if _is_topic_id(field) and not any(map(_is_topic_name, here)):
            name = next((body[name] for name in _TOPIC_NAMES if body.get(name)), None)
            if name is not None:
                return self._id_of(name)
        return field.zero(self._new)

    def _name_of(self, body: Mapping[str, Any]) -> str:
        name = next((body[name] for name in _TOPIC_NAMES if body.get(name)), None)
        name = name or self._topics.topic_name(body.get("topic_id", NO_ID))
        if name is None:
            topic_id = body.get("topic_id")
            reason = f"no name is known for topic id {topic_id}, and version {self._new} needs it"
            raise RewriteError(reason, Role.TOPIC_ID, topic_id)
        return name

    def _id_of(self, name: str) -> UUID:
        topic_id = self._topics.topic_id(name)
        if topic_id is None:
            reason = f"topic {name!r} has no id, and version {self._new} names topics by id"
            raise RewriteError(reason, Role.TOPIC, name)
        return topic_id

    def _check_dropped(
        self, fields: tuple[Field, ...], here: list[Field], body: Mapping[str, Any], path: str
    ) -> None:
        remaining = {field.name for field in here}
        is_named = any(_is_topic_id(f) or _is_topic_name(f) for f in here)
        for field in fields:
            if self._old not in field.versions or field.name in remaining:
                continue
            if not (is_named and (_is_topic_id(field) or _is_topic_name(field))):
                self._drop(field, body.get(field.name, ...), path)

    def _drop(self, field: Field, value: Any, path: str) -> None:
        """Drop a value without consequences."""
        below = f"{path}.{field.name}" if path else field.name
        if value is ... or value == field.zero(self._old):
            return
        has_meaning = field.type != "string" or value  # an empty pattern matches none
        is_needed = not field.ignorable and f"{self._api}.{below}" not in NO_LOSS
        if has_meaning and is_needed and not self.may_lose:
            raise self._lost(f"{below} = {value!r} would be lost")
        role = meaning_of(field, f"{self._title}.{below}").role
        self._changes.append(Change(below, role, value, None, DROPPED))

    def _lost(self, reason: str) -> RewriteError:
        what = f"{self._api} v{self._old} can't be sent as v{self._new}: {reason}"
        return UnsupportedByTarget(what)


_TOPIC_NAMES = ("name", "topic", "topic_name")


def _is_topic_id(field: Field) -> bool:
    return meaning_of(field).role is Role.TOPIC_ID


def _is_topic_name(field: Field) -> bool:
    return meaning_of(field).role is Role.TOPIC


def _folded(body: dict[str, Any], fold: Fold) -> dict[str, Any]:
    """Move fields of the body into the only element of an array."""
    element = {inside: body.pop(name) for name, inside in fold.fields.items() if name in body}
    body[fold.array] = [element[""] if "" in element else Container(element)]
    return body
