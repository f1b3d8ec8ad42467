"""The same request in another version of its API, where the target lacks the captured one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any
from uuid import UUID

from construct import Container

from dissector.protocol.api import Api
from dissector.protocol.compiled import UNKNOWN_TAGS
from dissector.protocol.headers import API_VERSIONS, PRODUCE
from dissector.protocol.schema import Field, Schema, split_tagged
from replay.fields.batch_rewriter import to_record_batch
from replay.fields.field_layout import Role
from replay.fields.roles import path_prefix, role_of
from replay.mapping.resource_names import NO_ID, TopicDirectory
from replay.mapping.version_table import BATCHES_FROM, EMPTY_MEANS_ALL, FOLDS, LISTS, NO_LOSS, Fold
from replay.model.outcome import Change
from replay.model.refusal import RewriteError

DROPPED = "dropped"
"""The rule by which a value was left out that the version has no room for."""

REENCODED = "re-encoded"
"""The rule by which records were written in the form that the version takes."""


_NO_OLD_PRODUCE, _FIRST_WITH_BATCHES = 12, 3
"""Kafka 4 offers Produce from v0 on, for librdkafka's sake; it takes v3 and newer (KAFKA-18659)."""


def choose_version(found: Api, captured: int, offered: Mapping[int, tuple[int, int]]) -> int | None:
    """
    Return the version to ask a target in.

    ApiVersions is what tells the versions, so it stays as it is.

    Args:
        found: The API.
        captured: The captured version.
        offered: What the target offers: key -> lowest and highest version.

    Returns:
        None where it offers none that we know.
    """
    if found.key == API_VERSIONS:
        return captured
    low, high = offered.get(found.key, (0, -1))
    if found.key == PRODUCE and high >= _NO_OLD_PRODUCE:
        low = max(low, _FIRST_WITH_BATCHES)
    return nearest_version(found.request, captured, low, high)


def nearest_version(schema: Schema, captured: int, low: int, high: int) -> int | None:
    """
    Return the version that both sides know and that is nearest to the captured one.

    Args:
        schema: The declaration.
        captured: The captured version.
        low: The lowest version of the target.
        high: Its highest.

    Returns:
        None where there is none.
    """
    low, high = max(low, schema.versions.low), min(high, schema.versions.high)
    return min(max(captured, low), high) if low <= high else None


@cache
def names_topics_by_id(schema: Schema, version: int) -> bool:
    """Tell whether a version names topics by their ids, and not by their names."""
    return _names_topics_by_id(schema.fields, version)


def _names_topics_by_id(fields: tuple[Field, ...], version: int) -> bool:
    here = [field for field in fields if version in field.versions]
    has_id = any(_is_topic_id(field) for field in here)
    has_name = any(field.entity == "topicName" for field in here)
    return (has_id and not has_name) or any(_names_topics_by_id(f.fields, version) for f in here)


def convert(
    schema: Schema,
    body: Mapping[str, Any],
    old: int,
    new: int,
    topics: TopicDirectory,
    changes: list[Change],
) -> Container:
    """
    Return a body of one version as one of another.

    Args:
        schema: The declaration.
        body: Of the old version.
        old: Its version.
        new: The version that is wanted.
        topics: Knows the ids of the topics that the body names, or the reverse.
        changes: Values are added that the new version has no room for, and that may be lost.

    Raises:
        Refused: Something would be lost that must not be, or a topic's id or name is not known.
    """
    return _Conversion(path_prefix(schema), old, new, topics, changes).body(schema, body)


class _Conversion:
    """One conversion: which API, from which version to which."""

    def __init__(
        self, title: str, old: int, new: int, topics: TopicDirectory, changes: list[Change]
    ) -> None:
        self._title = title
        self._api = title.partition(".")[0]
        self._old = old
        self._new = new
        self._topics = topics
        self._changes = changes

    def body(self, schema: Schema, body: Mapping[str, Any]) -> Container:
        """Convert the whole body."""
        fold = FOLDS.get(self._api)
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
        """Take the one element of an array apart."""
        elements = body.pop(fold.array)
        if len(elements) != 1:
            raise self._lost(f"{fold.array} has {len(elements)} elements, only one has room")
        (element,) = elements
        for name, inside in fold.fields.items():
            body[name] = element[inside] if inside else element
        array = next(field for field in schema.fields if field.name == fold.array)
        for field in array.fields:
            if field.name not in fold.fields.values():
                self._drop(field, element.get(field.name, ...), fold.array)
        return body

    def _listed(self, schema: Schema, body: dict[str, Any]) -> dict[str, Any]:
        """Make an array of names one of structs, or the reverse."""
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
            if self._new not in field.null:
                raise self._lost(f"{path} is null, and must not be")
            return None
        if field.type == "records":
            return self._records(value, path)
        if field.type == "struct":
            return self._struct(field.fields, value, path)
        if field.type == "[]struct":
            return [self._struct(field.fields, each, path) for each in value]
        return value

    def _all(self, value: Any, path: str) -> Any:
        """Say `all` as the version says it."""
        name, version = EMPTY_MEANS_ALL[self._api]
        if path == name and self._old == version and value == []:
            return None
        if path == name and self._new == version:
            if value == []:
                raise self._lost(f"an empty {name} would ask for all")
            return [] if value is None else value
        return value

    def _records(self, data: bytes, path: str) -> bytes:
        """Write records anew where they must have another form; that is told."""
        batches_from = BATCHES_FROM.get(self._api, 0)
        if self._new < batches_from <= self._old:
            raise self._lost("record batches are not known there")
        if not self._old < batches_from <= self._new:
            return data
        written = to_record_batch(data)
        if written != data:
            forms = "message set", "record batch"
            self._changes.append(Change(path, Role.RECORDS, *forms, REENCODED))
        return written

    def _absent(self, field: Field, here: list[Field], body: Mapping[str, Any]) -> Any:
        """Return the value of a field that the old version has not."""
        if field.entity == "topicName" and body.get("topic_id", NO_ID) != NO_ID:
            return self._name_of(body)
        if _is_topic_id(field) and not any(each.entity == "topicName" for each in here):
            name = next((body[name] for name in _TOPIC_NAMES if body.get(name)), None)
            if name is not None:
                return self._id_of(name)
        return field.zero(self._new)

    def _name_of(self, body: Mapping[str, Any]) -> str:
        name = next((body[name] for name in _TOPIC_NAMES if body.get(name)), None)
        name = name or self._topics.topic_name(body.get("topic_id", NO_ID))
        if name is None:
            topic_id = body.get("topic_id")
            what = f"nothing names the topic with id {topic_id}, and version {self._new} needs it"
            raise RewriteError(what, Role.TOPIC_ID, topic_id)
        return name

    def _id_of(self, name: str) -> UUID:
        topic_id = self._topics.topic_id(name)
        if topic_id is None:
            what = f"topic {name!r} has no id, and version {self._new} names topics by id"
            raise RewriteError(what, Role.TOPIC, name)
        return topic_id

    def _check_dropped(
        self, fields: tuple[Field, ...], here: list[Field], body: Mapping[str, Any], path: str
    ) -> None:
        kept = {field.name for field in here}
        is_named = any(_is_topic_id(f) or f.entity == "topicName" for f in here)
        for field in fields:
            if self._old not in field.versions or field.name in kept:
                continue
            if not (is_named and (_is_topic_id(field) or field.entity == "topicName")):
                self._drop(field, body.get(field.name, ...), path)

    def _drop(self, field: Field, value: Any, path: str) -> None:
        """Let a value go, if nothing depends on it."""
        below = f"{path}.{field.name}" if path else field.name
        if value is ... or value == field.zero(self._old):
            return
        names_something = field.type != "string" or value  # as an empty pattern does not
        if names_something and not field.ignorable and f"{self._api}.{below}" not in NO_LOSS:
            raise self._lost(f"{below} = {value!r} would be lost")
        role = role_of(f"{self._title}.{below}", field)
        self._changes.append(Change(below, role, value, None, DROPPED))

    def _lost(self, what: str) -> RewriteError:
        return RewriteError(f"{self._api} v{self._old} can't be sent as v{self._new}: {what}")


_TOPIC_NAMES = ("name", "topic", "topic_name")


def _is_topic_id(field: Field) -> bool:
    return field.type == "uuid" and field.name == "topic_id"


def _folded(body: dict[str, Any], fold: Fold) -> dict[str, Any]:
    """Make fields of the body the one element of an array."""
    given = {inside: body.pop(name) for name, inside in fold.fields.items() if name in body}
    body[fold.array] = [given[""] if "" in given else Container(given)]
    return body
