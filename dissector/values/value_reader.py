"""Reads keys and values: finds their format and schema, and decodes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from dissector.hooks.hook_types import Record
from dissector.values.avro.avro_files import CONTAINER_MAGIC, container_values
from dissector.values.carriers.carried_schema import (
    CarriedSchema,
    MessageChoice,
    MessagePlace,
    SchemaRef,
    ref_text,
)
from dissector.values.carriers.envelopes import (
    connect_payload,
    is_change_event,
    is_cloud_event,
    may_be_envelope,
)
from dissector.values.carriers.schema_headers import schemas_in_headers, sole_schema_header
from dissector.values.carriers.schema_prefixes import PREFIX_END, schemas_in_prefix
from dissector.values.hooked_values import HookedValues
from dissector.values.json_values import compact_json, is_finite, json_or_text
from dissector.values.located_value import LocatedValue
from dissector.values.schemas.known_schema import PLAIN_JSON, Decoder, KnownSchema, Origin
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.steps.step_programs import FieldProgram, TextProgram
from dissector.values.topic_formats import GivenFormat, TopicFormats
from dissector.values.value_leaves import Leaf
from dissector.values.value_limits import ValueProblem, output_limit


class DecodedValue(NamedTuple):
    """
    What a key or a value says.

    Attributes:
        format: `avro`, `json`, `text` and so on, behind those of envelopes: `debezium+avro`; None
            if it is none.
        schema: The schema's subject and version, or its id.
        value: In the types of JSON; None if it does not decode.
        text: The same as one line of JSON.
        problem: Why it does not decode, if its format is known.
        origin: Its decoder, the bytes that it read, their begin, and Protobuf's message.
    """

    format: str | None = None
    schema: str | None = None
    value: Any = None
    text: str | None = None
    problem: str | None = None
    origin: Origin | None = None

    def located_in(self, data: bytes) -> LocatedValue | None:
        """Return the value with its places in the key or the value; None if these are unknown."""
        if self.origin is None or self.problem:
            return None
        decoder, content, at, message = self.origin
        if content is not data:  # it was compressed
            return None
        found = decoder.located(content, at, message)
        is_connect = found is not None and connect_payload(found.value) is not None
        return found.member("payload") if found is not None and is_connect else found

    def leaves_in(self, data: bytes) -> Sequence[Leaf] | None:
        """Return the leaves of the key or the value in its bytes; None if these are unknown."""
        if self.origin is None or self.problem:
            return None
        decoder, content, at, message = self.origin
        leaves = None if content is not data else decoder.leaves(data, at, message)
        found = (
            self.located_in(data) if leaves and self.format and "connect" in self.format else None
        )
        if leaves is None or found is None:
            return leaves
        return [each for each in leaves if found.start <= each.start and each.end <= found.end]


NOTHING = DecodedValue()

_NO_HEADERS: Mapping[str, bytes] = {}


class Registry(Protocol):
    """Knows schemas that the store lacks."""

    def add(self, store: SchemaStore, ref: SchemaRef) -> None:
        """Add a schema to a store, if it is known; each is asked for once."""
        ...


class _Plan(NamedTuple):
    """How a value was decoded: its schema, and where it begins."""

    format: str
    schema: str
    decoder: Decoder
    at: int
    message: MessageChoice


_Place: TypeAlias = tuple[str | None, bool, bytes, bool]
"""A topic, whether it is a key, and what names the schema, in a header or before the value."""

_MAX_PLANS = 10_000


@dataclass(eq=False)
class ValueReader:
    """
    Reads keys and values.

    Attributes:
        store: The known schemas.
        formats: Formats that the user gave for topics.
        read_more: Adds schemas to the store; called once, when one is unknown.
        registries: Are asked for a schema that is still unknown.
        hooks: Functions of the user, which come first.
    """

    store: SchemaStore
    formats: TopicFormats
    read_more: Callable[[], None] | None = None
    registries: Sequence[Registry] = ()
    hooks: HookedValues | None = None
    _plans: dict[_Place, _Plan] = field(default_factory=dict, repr=False)

    def read(
        self,
        topic: str | None,
        data: bytes | None,
        headers: Mapping[str, bytes] = _NO_HEADERS,
        *,
        is_key: bool = False,
        with_text: bool = True,
        with_problem: bool = False,
        record: Record | None = None,
    ) -> DecodedValue:
        """
        Decode a key or a value; whatever the bytes are, it raises nothing.

        Args:
            topic: The name of the topic, if it is known.
            data: The key or the value.
            headers: The headers of the record.
            is_key: Whether it is the key.
            with_text: Whether `text` is needed; without it, it may be None.
            with_problem: Whether without texts a value beyond the limits of these has its problem.
            record: The whole record, for hooks; by default they get these parts of it.
        """
        if data is None:
            return NOTHING
        if self.hooks:
            if record is None:
                record = (
                    Record(topic, data, None, headers)
                    if is_key
                    else Record(topic, None, data, headers)
                )
            hooked = self.hooks.read(record, is_key=is_key)
            if hooked is not None:
                return DecodedValue(*hooked)
        given = self.formats.find(topic, is_key=is_key)
        if given is not None:
            found, with_text = _by_topic(given, data), True
        else:
            named = sole_schema_header(headers, is_key=is_key)
            place = topic, is_key, named or data[:PREFIX_END], bool(named)
            plan = None if named is None else self._plans.get(place)
            if plan is not None and (planned := _planned(plan, data)) is not None:
                return _finished(planned, len(data), headers, with_text or with_problem)
            found = self._with_schema(topic, data, headers, is_key) or _without_schema(data)
            self._keep_plan(place, found, data)
            with_text = with_text or not _surely_has_text(found)
        return found if found.problem else _finished(found, len(data), headers, with_text)

    def read_record(self, record: Record, *, is_key: bool, **needs: bool) -> DecodedValue:
        """Decode the key or the value of a record; see `read`."""
        data, headers = record.key if is_key else record.value, record.headers
        return self.read(record.topic, data, headers, is_key=is_key, record=record, **needs)

    def field_program(
        self, path: Sequence[str], topic: str | None, data: bytes, *, is_key: bool
    ) -> FieldProgram | None:
        """
        Return what finds a field of values that begin like one that decoded; None: `read` has to.

        The values have a prefix of `PREFIX_END` bytes, and no header names their schema.
        """
        plan = self._plan_of(topic, data, is_key)
        return plan and plan.decoder.field_program(path, (data, plan.at, plan.message))

    def text_program(self, topic: str | None, data: bytes, *, is_key: bool) -> TextProgram | None:
        """Return what writes the texts of values; see `field_program`."""
        plan = self._plan_of(topic, data, is_key)
        program = plan and plan.decoder.text_program((data, plan.at, plan.message))
        if plan is None or program is None:
            return None
        program.schema = plan.schema
        if program.members is not None and not may_be_envelope(program.members):
            program.format = plan.format
        return program

    def _plan_of(self, topic: str | None, data: bytes, is_key: bool) -> _Plan | None:
        """Return how values are decoded that begin like one, if no header says how."""
        return None if self.hooks else self._plans.get((topic, is_key, data[:PREFIX_END], False))

    def _keep_plan(self, place: _Place, found: DecodedValue, data: bytes) -> None:
        """Keep how a value was decoded, for those in the same place that name the same schema."""
        if found.problem or found.origin is None or not found.format or not found.schema:
            return
        if len(place[2]) < PREFIX_END:
            return
        decoder, content, at, message = found.origin
        is_known = self.store.find(_ref_of(place[2])) is not None
        if is_known and content is data and at == (0 if place[3] else PREFIX_END):
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            self._plans[place] = _Plan(found.format, found.schema, decoder, at, message)

    def _with_schema(
        self, topic: str | None, data: bytes, headers: Mapping[str, bytes], is_key: bool
    ) -> DecodedValue | None:
        """Return a value whose record names a schema; None if none is named."""
        first: DecodedValue | None = None
        try:
            for carried in _carried(data, headers, is_key):
                schema = self._find(carried)
                if schema is None and first is not None and first.format is not None:
                    continue  # no guess where a known schema is named
                found = (
                    self._of_unknown(topic, carried, is_key)
                    if schema is None
                    else _decoded(schema, schema.label(topic, is_key=is_key), carried)
                )
                if found is not None and not found.problem:
                    return found
                if carried.is_sure or schema is not None:
                    first = first or found
        except ValueProblem as problem:
            return DecodedValue(problem=str(problem))
        return first

    def _find(self, carried: CarriedSchema) -> KnownSchema | None:
        schema = self.store.find(carried.ref)
        if schema is None and self.read_more is not None:
            read_more, self.read_more = self.read_more, None
            read_more()
            schema = self.store.find(carried.ref)
        if schema is None and self.registries and carried.is_sure:
            for registry in self.registries:
                registry.add(self.store, carried.ref)
            schema = self.store.find(carried.ref)
        return schema

    def _of_unknown(
        self, topic: str | None, carried: CarriedSchema, is_key: bool
    ) -> DecodedValue | None:
        """Return a value of an unknown schema, by a schema of its subject that fits exactly."""
        for schema in self.store.of_subject(topic, is_key=is_key):
            label = schema.label(topic, is_key=is_key)
            found = _decoded(schema, label, carried, is_exact=True)
            if not found.problem:
                return found
        if not carried.is_sure:
            return None
        name = ref_text(carried.ref)
        return DecodedValue(None, name, problem=f"the schema with {name} is unknown")


def _carried(data: bytes, headers: Mapping[str, bytes], is_key: bool) -> Iterator[CarriedSchema]:
    if headers:
        yield from schemas_in_headers(headers, data, is_key=is_key)
    if data:
        yield from schemas_in_prefix(data)


def _decoded(
    schema: KnownSchema, label: str, carried: CarriedSchema, *, is_exact: bool = False
) -> DecodedValue:
    _, content, at, message, _ = carried
    try:
        decoder = schema.decoder
        value = decoder.value(content, at, message, is_exact=is_exact)
    except ValueProblem as problem:
        return DecodedValue(schema.kind, label, problem=str(problem))
    return DecodedValue(schema.kind, label, value, None, None, (decoder, content, at, message))


def _ref_of(named: bytes) -> SchemaRef:
    """Return the schema that Confluent's header or prefix names."""
    return int.from_bytes(named[1:], "big") if len(named) == PREFIX_END else UUID(bytes=named[1:])


def _planned(plan: _Plan, data: bytes) -> DecodedValue | None:
    """Return a value by a plan; None where it does not decode."""
    name, schema, decoder, at, message = plan
    try:
        value = decoder.value(data, at, message)
    except ValueProblem:
        return None
    return DecodedValue(name, schema, value, None, None, (decoder, data, at, message))


def _by_topic(given: GivenFormat, data: bytes) -> DecodedValue:
    try:
        value, origin = given.read(data)
    except ValueProblem as problem:
        return DecodedValue(given.format, given.label, problem=str(problem))
    return DecodedValue(given.format, given.label, value, origin=origin)


def _attempt(name: str, label: str | None, read: Callable[[], Any]) -> DecodedValue:
    try:
        return DecodedValue(name, label, read())
    except ValueProblem as problem:
        return DecodedValue(name, label, problem=str(problem))


def _without_schema(data: bytes) -> DecodedValue:
    """Return a value that describes itself, JSON or text."""
    if data.startswith(CONTAINER_MAGIC):
        return _attempt("avro", None, lambda: container_values(data))
    found = json_or_text(data)
    if found is None:
        return NOTHING
    name, value = found
    origin = (PLAIN_JSON, data, 0, MessagePlace.FIRST) if name == "json" else None
    return DecodedValue(name, None, value, origin=origin)


def _surely_has_text(found: DecodedValue) -> bool:
    """Return whether the text of a value without a schema is known to be within all limits."""
    if found.format == "text":
        return True
    origin = found.origin
    return origin is not None and origin[0] is PLAIN_JSON and is_finite(origin[1])


def _finished(
    found: DecodedValue, size: int, headers: Mapping[str, bytes], with_text: bool = True
) -> DecodedValue:
    """Return a value with its envelopes named, and its text."""
    name, schema, value, _, _, origin = found
    if name is None:
        return found
    if name == "json" and (connect := connect_payload(value)) is not None:
        value, schema = connect
        name = "connect+json"
    if is_change_event(value):
        name = f"debezium+{name}"
    if is_cloud_event(value, headers):
        name = f"cloudevents+{name}"
    if not with_text:
        return DecodedValue(name, schema, value, None, None, origin)
    try:
        text = compact_json(value)
    except (ValueError, RecursionError):
        problem = "numbers beyond those of JSON, or nested too deep"
        return DecodedValue(name, schema, problem=problem)
    if len(text) > output_limit(size):
        problem = f"more output than its size allows ({len(text):,} bytes)"
        return DecodedValue(name, schema, problem=problem)
    return DecodedValue(name, schema, value, text, None, origin)
